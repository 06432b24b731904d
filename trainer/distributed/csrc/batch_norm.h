// The arithmetic of batch normalization whose statistics come from several
// ranks: five operations. CUDA has fused kernels for them. Everywhere else, and
// for kinds that the kernels lack, they are made of ATen operations.
#pragma once

#include <optional>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace tchd {

class BatchNorm {
 public:
  // With the fused kernels if they take these tensors. All ranks must choose alike,
  // so their tensors must have the same kinds.
  static BatchNorm choose(
      const at::Tensor& input,
      const at::Tensor& weight,
      const std::optional<at::Tensor>& running);

  explicit BatchNorm(bool fused) : fused_(fused) {}

  bool fused() const {
    return fused_;
  }

  // The kind in which ranks exchange statistics.
  at::ScalarType statistics_kind() const;

  // The input as the other functions take it.
  at::Tensor dense(const at::Tensor& input) const;

  // Mean and inverse standard deviation of this rank's values, per channel.
  std::tuple<at::Tensor, at::Tensor> statistics(const at::Tensor& input, double eps) const;

  // Mean and inverse standard deviation of all values, in float32, from those of
  // the ranks (ranks, C) and their numbers of values per channel (ranks). The
  // first rank must have values. Updates the running statistics.
  std::tuple<at::Tensor, at::Tensor> merge(
      const at::Tensor& means,
      const at::Tensor& invstds,
      const at::Tensor& counts,
      const std::optional<at::Tensor>& running_mean,
      const std::optional<at::Tensor>& running_var,
      double momentum,
      double eps) const;

  at::Tensor normalize(
      const at::Tensor& input,
      const at::Tensor& weight,
      const at::Tensor& bias,
      const at::Tensor& mean,
      const at::Tensor& invstd,
      double eps) const;

  // Per channel: the sum of the gradient, the sum of the gradient times the
  // centered input, and the gradients of weight and bias.
  std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> reduce_gradient(
      const at::Tensor& gradient,
      const at::Tensor& input,
      const at::Tensor& mean,
      const at::Tensor& invstd,
      const at::Tensor& weight) const;

  // The gradient of the input, from the two sums over all ranks.
  at::Tensor input_gradient(
      const at::Tensor& gradient,
      const at::Tensor& input,
      const at::Tensor& mean,
      const at::Tensor& invstd,
      const at::Tensor& weight,
      const at::Tensor& sum_dy,
      const at::Tensor& sum_dy_centered,
      const at::Tensor& counts) const;

 private:
  bool fused_;
};

} // namespace tchd
