#include "sync_batch_norm.h"

#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "batch_norm.h"
#include "shim/error.h"

namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// One vector per rank, as rows.
at::Tensor all_gather(const Group& group, at::Tensor own) {
  auto gathered = at::empty({group->getSize() * own.numel()}, own.options());
  group->_allgather_base(gathered, own)->wait();
  return gathered.view({group->getSize(), own.numel()});
}

void all_reduce_sum(const Group& group, at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  group->allreduce(tensors)->wait();
}

// Mean, inverse standard deviation and number of values of this rank. A rank
// without values contributes what does not change the others' statistics.
at::Tensor own_statistics(const tchd::BatchNorm& norm, const at::Tensor& input, int64_t count, double eps) {
  const auto options = input.options().dtype(norm.statistics_kind());
  const auto count_tensor = at::full({1}, static_cast<double>(count), options);
  if (count == 0) {
    const int64_t channels = input.size(1);
    return at::cat(
        {at::zeros({channels}, options), at::full({channels}, 1 / std::sqrt(eps), options), count_tensor});
  }
  auto [mean, invstd] = norm.statistics(input, eps);
  return at::cat({mean, invstd, count_tensor});
}

// An all-gather in the forward pass and an all-reduce in the backward pass.
struct SyncBatchNorm : torch::autograd::Function<SyncBatchNorm> {
  static at::Tensor forward(
      torch::autograd::AutogradContext* context,
      const at::Tensor& original,
      const at::Tensor& weight,
      const at::Tensor& bias,
      const std::optional<at::Tensor>& running_mean,
      const std::optional<at::Tensor>& running_var,
      double momentum,
      double eps,
      const Group& group) {
    const auto norm = tchd::BatchNorm::choose(original, weight, running_mean ? running_mean : running_var);
    const auto input = norm.dense(original);
    const int64_t channels = input.size(1);
    const int64_t count = channels == 0 ? 0 : input.numel() / channels;

    auto gathered = all_gather(group, own_statistics(norm, input, count, eps));
    // A rank with values comes first. This does not wait for the device.
    const auto order = at::argsort(gathered.select(1, 2 * channels), /*stable=*/true, 0, /*descending=*/true);
    gathered = gathered.index_select(0, order);
    const auto counts = gathered.select(1, 2 * channels).contiguous();
    // The unbiased variance of one value is 0/0. With two values here there are
    // at least two in total, so the usual case does not wait for the device.
    if (count < 2) {
      const double values_per_channel = counts.sum().item<double>();
      TORCH_CHECK(
          values_per_channel >= 2,
          "sync_batch_norm needs more than 1 value per channel over all ranks, got ",
          values_per_channel,
          " with an input of size ",
          input.sizes(),
          " on this rank");
    }
    auto [mean, invstd] = norm.merge(
        gathered.narrow(1, 0, channels).contiguous(),
        gathered.narrow(1, channels, channels).contiguous(),
        counts,
        running_mean,
        running_var,
        momentum,
        eps);

    context->save_for_backward({input, weight, mean, invstd, counts});
    context->saved_data["fused"] = norm.fused();
    // The graph keeps the group alive for its backward pass.
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::static_intrusive_pointer_cast<torch::CustomClassHolder>(group));
    return count == 0 ? at::empty_like(input) : norm.normalize(input, weight, bias, mean, invstd, eps);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto& input = saved[0];
    const auto& weight = saved[1];
    const auto& mean = saved[2];
    const auto& invstd = saved[3];
    const auto& counts = saved[4];
    const auto group =
        c10::static_intrusive_pointer_cast<c10d::ProcessGroup>(context->saved_data["group"].toCapsule());
    const tchd::BatchNorm norm(context->saved_data["fused"].toBool());
    const int64_t channels = input.size(1);
    // The kernels take both tensors in the same layout.
    const auto gradient = gradients[0].contiguous(input.suggest_memory_format());

    at::Tensor sum_dy = at::zeros_like(mean);
    at::Tensor sum_dy_centered = at::zeros_like(mean);
    at::Tensor weight_gradient = at::zeros_like(weight);
    at::Tensor bias_gradient = at::zeros_like(weight);
    if (input.numel() > 0) {
      std::tie(sum_dy, sum_dy_centered, weight_gradient, bias_gradient) =
          norm.reduce_gradient(gradient, input, mean, invstd, weight);
    }
    auto sums = at::cat({sum_dy, sum_dy_centered});
    all_reduce_sum(group, sums);
    const auto input_gradient = input.numel() == 0 ? at::empty_like(input)
                                                   : norm.input_gradient(
                                                         gradient,
                                                         input,
                                                         mean,
                                                         invstd,
                                                         weight,
                                                         sums.narrow(0, 0, channels),
                                                         sums.narrow(0, channels, channels),
                                                         counts);

    // Gradients of weight and bias are those of this rank. The Reducer averages them.
    const at::Tensor none;
    return {input_gradient, weight_gradient, bias_gradient, none, none, none, none, none};
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
