// Optimizer steps over all parameters in one call, and operations on lists of
// tensors. All state belongs to the caller, so it can be saved and restored.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tchd {
struct SgdOptions {
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  int32_t nesterov;
  // The momentum buffers hold nothing yet: they start as the gradients.
  int32_t first_step;
};

struct AdamOptions {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  // AdamW: the decay does not pass through the moments.
  int32_t decoupled;
};
} // namespace tchd

extern "C" {
// All lists have `count` tensors; `buffers` is null when the momentum is 0.
int tchd_fused_sgd(
    at::Tensor* const* parameters,
    at::Tensor* const* gradients,
    at::Tensor* const* buffers,
    size_t count,
    const tchd::SgdOptions* options);
// `steps` are float32 scalars, counted up by this call.
int tchd_fused_adam(
    at::Tensor* const* parameters,
    at::Tensor* const* gradients,
    at::Tensor* const* first_moments,
    at::Tensor* const* second_moments,
    at::Tensor* const* steps,
    size_t count,
    const tchd::AdamOptions* options);
int tchd_foreach_zero(at::Tensor* const* tensors, size_t count);
int tchd_foreach_mul(at::Tensor* const* tensors, size_t count, double factor);
// averages = averages * decay + values * (1 - decay)
int tchd_foreach_average(at::Tensor* const* averages, at::Tensor* const* values, size_t count, double decay);
// torch.nn.utils.clip_grad_norm_ for the 2-norm; `*norm` is a new scalar tensor.
int tchd_clip_grad_norm(at::Tensor* const* gradients, size_t count, double max_norm, at::Tensor** norm);
// What a gradient scaler does before a step: multiplies by `inverse_scale` and
// sets `found_inf` to 1 if any gradient is not finite.
int tchd_amp_unscale(at::Tensor* const* gradients, size_t count, at::Tensor* found_inf, at::Tensor* inverse_scale);
}
