#include "batch_norm.h"

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm_backward_elemt.h>
#include <ATen/ops/batch_norm_backward_reduce.h>
#include <ATen/ops/batch_norm_elemt.h>
#include <ATen/ops/batch_norm_gather_stats_with_counts.h>
#include <ATen/ops/batch_norm_stats.h>
#include <ATen/ops/var_mean.h>

namespace tchd {
namespace {

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

void update(at::Tensor running, const at::Tensor& value, double momentum) {
  running.mul_(1 - momentum).add_(value.to(running.scalar_type()), momentum);
}

} // namespace

BatchNorm BatchNorm::choose(
    const at::Tensor& input,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& running) {
  const auto kind = input.scalar_type();
  return BatchNorm(
      input.is_cuda() && (kind == at::kFloat || kind == at::kHalf || kind == at::kBFloat16) &&
      weight.scalar_type() == at::kFloat && (!running || running->scalar_type() == at::kFloat));
}

at::ScalarType BatchNorm::statistics_kind() const {
  // The kernels merge without cancellation; the sums below are in float64.
  return fused_ ? at::kFloat : at::kDouble;
}

at::Tensor BatchNorm::dense(const at::Tensor& input) const {
  return fused_ ? input.contiguous(input.suggest_memory_format()) : input;
}

std::tuple<at::Tensor, at::Tensor> BatchNorm::statistics(const at::Tensor& input, double eps) const {
  if (fused_) {
    return at::batch_norm_stats(input, eps);
  }
  auto [var, mean] = at::var_mean(input.to(at::kFloat), reduced_dims(input), /*unbiased=*/false);
  return {mean.to(at::kDouble), (var.to(at::kDouble) + eps).rsqrt()};
}

std::tuple<at::Tensor, at::Tensor> BatchNorm::merge(
    const at::Tensor& means,
    const at::Tensor& invstds,
    const at::Tensor& counts,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    double momentum,
    double eps) const {
  if (fused_) {
    // The first argument only tells the kind of the running statistics and counts.
    return at::batch_norm_gather_stats_with_counts(
        means, means, invstds, running_mean, running_var, momentum, eps, counts);
  }
  const auto total = counts.sum();
  const auto weights = counts.unsqueeze(1);
  const auto mean = (means * weights).sum(0) / total;
  const auto vars = invstds.pow(-2) - eps;
  const auto var = (((vars + (means - mean).square()) * weights).sum(0) / total).clamp_min(0);
  if (running_mean) {
    update(*running_mean, mean, momentum);
  }
  if (running_var) {
    update(*running_var, var * (total / (total - 1)), momentum);
  }
  return {mean.to(at::kFloat), (var + eps).rsqrt().to(at::kFloat)};
}

at::Tensor BatchNorm::normalize(
    const at::Tensor& input,
    const at::Tensor& weight,
    const at::Tensor& bias,
    const at::Tensor& mean,
    const at::Tensor& invstd,
    double eps) const {
  if (fused_) {
    return at::batch_norm_elemt(input, weight, bias, mean, invstd, eps);
  }
  const auto shape = channel_shape(input);
  const auto scale = (invstd * weight).view(shape);
  return ((input.to(at::kFloat) - mean.view(shape)) * scale + bias.view(shape)).to(input.scalar_type());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> BatchNorm::reduce_gradient(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const at::Tensor& mean,
    const at::Tensor& invstd,
    const at::Tensor& weight) const {
  if (fused_) {
    return at::batch_norm_backward_reduce(
        gradient, input, mean, invstd, weight, /*input_g=*/true, /*weight_g=*/true, /*bias_g=*/true);
  }
  const auto dims = reduced_dims(input);
  const auto dy = gradient.to(at::kFloat);
  const auto sum_dy = dy.sum(dims);
  const auto sum_dy_centered = (dy * (input.to(at::kFloat) - mean.view(channel_shape(input)))).sum(dims);
  return {
      sum_dy,
      sum_dy_centered,
      (sum_dy_centered * invstd).to(weight.scalar_type()),
      sum_dy.to(weight.scalar_type())};
}

at::Tensor BatchNorm::input_gradient(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const at::Tensor& mean,
    const at::Tensor& invstd,
    const at::Tensor& weight,
    const at::Tensor& sum_dy,
    const at::Tensor& sum_dy_centered,
    const at::Tensor& counts) const {
  if (fused_) {
    return at::batch_norm_backward_elemt(
        gradient, input, mean, invstd, weight, sum_dy, sum_dy_centered, counts.to(at::kInt));
  }
  const auto shape = channel_shape(input);
  const auto total = counts.sum().to(at::kFloat);
  const auto mean_dy = (sum_dy / total).view(shape);
  const auto slope = (invstd * invstd * sum_dy_centered / total).view(shape);
  const auto centered = input.to(at::kFloat) - mean.view(shape);
  return ((gradient.to(at::kFloat) - mean_dy - centered * slope) * (invstd * weight).view(shape))
      .to(input.scalar_type());
}

} // namespace tchd
