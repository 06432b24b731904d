#include "sync_batch_norm.h"

#include <optional>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "shim/error.h"

namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

void all_reduce_sum(const Group& group, at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  group->allreduce(tensors)->wait();
}

// All dimensions except that of the channels.
std::vector<int64_t> reduced_dims(const at::Tensor& input) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) {
      dims.push_back(d);
    }
  }
  return dims;
}

// The shape in which a vector over the channels broadcasts against the input.
std::vector<int64_t> channel_shape(const at::Tensor& input) {
  std::vector<int64_t> shape(input.dim(), 1);
  shape[1] = input.size(1);
  return shape;
}

// One all-reduce in the forward pass and one in the backward pass. Everything
// else is ATen operations, so it runs on any device. A half-precision input is
// normalized in float32.
struct SyncBatchNorm : torch::autograd::Function<SyncBatchNorm> {
  static at::Tensor forward(
      torch::autograd::AutogradContext* context,
      const at::Tensor& input,
      const at::Tensor& weight,
      const at::Tensor& bias,
      const std::optional<at::Tensor>& running_mean,
      const std::optional<at::Tensor>& running_var,
      double momentum,
      double eps,
      const Group& group) {
    const auto dims = reduced_dims(input);
    const auto shape = channel_shape(input);
    const int64_t channels = input.size(1);
    const int64_t count = channels == 0 ? 0 : input.numel() / channels;
    const auto values = input.to(at::kFloat);

    // Each rank contributes its count, count * mean and count * (var + mean^2).
    // The sums are in float64, because the variance is a difference of two.
    const auto in_double = input.options().dtype(at::kDouble);
    at::Tensor sums;
    if (count > 0) {
      auto [var, mean] = at::var_mean(values, dims, /*unbiased=*/false);
      mean = mean.to(at::kDouble);
      const auto second = var.to(at::kDouble) + mean * mean;
      sums = at::cat({mean * count, second * count, at::full({1}, static_cast<double>(count), in_double)});
    } else {
      sums = at::zeros({2 * channels + 1}, in_double);
    }
    all_reduce_sum(group, sums);

    const auto total = sums.narrow(0, 2 * channels, 1);
    // The unbiased variance of one value is 0/0. With two values here there are
    // at least two in total, so the usual case does not wait for the device.
    if (count < 2) {
      const double values_per_channel = total.item<double>();
      TORCH_CHECK(
          values_per_channel >= 2,
          "sync_batch_norm needs more than 1 value per channel over all ranks, got ",
          values_per_channel,
          " with an input of size ",
          input.sizes(),
          " on this rank");
    }
    const auto mean = sums.narrow(0, 0, channels) / total;
    const auto var = (sums.narrow(0, channels, channels) / total - mean * mean).clamp_min(0);
    const auto invstd = (var + eps).rsqrt().to(at::kFloat);
    if (running_mean) {
      running_mean->mul_(1 - momentum).add_(mean.to(running_mean->scalar_type()), momentum);
    }
    if (running_var) {
      const auto unbiased = var * (total / (total - 1));
      running_var->mul_(1 - momentum).add_(unbiased.to(running_var->scalar_type()), momentum);
    }

    const auto mean_float = mean.to(at::kFloat);
    context->save_for_backward({input, weight, mean_float, invstd, total.to(at::kFloat)});
    // The graph keeps the group alive for its backward pass.
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::static_intrusive_pointer_cast<torch::CustomClassHolder>(group));
    const auto scale = (invstd * weight).view(shape);
    return ((values - mean_float.view(shape)) * scale + bias.view(shape)).to(input.scalar_type());
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto& input = saved[0];
    const auto& weight = saved[1];
    const auto& mean = saved[2];
    const auto& invstd = saved[3];
    const auto& total = saved[4];
    const auto group =
        c10::static_intrusive_pointer_cast<c10d::ProcessGroup>(context->saved_data["group"].toCapsule());
    const auto dims = reduced_dims(input);
    const auto shape = channel_shape(input);
    const int64_t channels = input.size(1);

    const auto dy = gradients[0].to(at::kFloat);
    const auto centered = input.to(at::kFloat) - mean.view(shape);
    const auto sum_dy = dy.sum(dims);
    const auto sum_dy_centered = (dy * centered).sum(dims);

    auto sums = at::cat({sum_dy, sum_dy_centered});
    all_reduce_sum(group, sums);
    const auto mean_dy = sums.narrow(0, 0, channels) / total;
    const auto mean_dy_centered = sums.narrow(0, channels, channels) / total;
    const auto grad_input =
        (dy - mean_dy.view(shape) - centered * (invstd * invstd * mean_dy_centered).view(shape)) *
        (invstd * weight).view(shape);

    // Gradients of weight and bias are those of this rank. The Reducer averages them.
    const at::Tensor none;
    return {
        grad_input.to(input.scalar_type()),
        (sum_dy_centered * invstd).to(weight.scalar_type()),
        sum_dy.to(weight.scalar_type()),
        none,
        none,
        none,
        none,
        none};
  }
};

std::optional<at::Tensor> optional(at::Tensor* tensor) {
  return tensor == nullptr ? std::nullopt : std::optional<at::Tensor>(*tensor);
}

} // namespace

extern "C" int tchd_sync_batch_norm(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* weight,
    at::Tensor* bias,
    at::Tensor* running_mean,
    at::Tensor* running_var,
    double momentum,
    double eps,
    at::Tensor** out) {
  return tchd::guarded([&] {
    TORCH_CHECK(
        input->dim() >= 2,
        "sync_batch_norm needs an input with at least two dimensions (N, C, ...), got ",
        input->dim());
    *out = new at::Tensor(
        SyncBatchNorm::apply(
            *input,
            *weight,
            *bias,
            optional(running_mean),
            optional(running_var),
            momentum,
            eps,
            group->group));
  });
}
