// Optimizer steps over all parameters in one call, and operations on lists of
// tensors. The caller owns all state, so it can save and restore it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tcht {
struct SgdOptions {
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  int32_t nesterov;
  // The momentum buffers are not initialized: they become the gradients.
  int32_t first_step;
};

struct AdamOptions {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  // AdamW: the weight decay does not go through the moments.
  int32_t decoupled;
};

// ffi.rs asserts the same numbers.
static_assert(sizeof(SgdOptions) == 40 && offsetof(SgdOptions, first_step) == 36);
static_assert(sizeof(AdamOptions) == 48 && offsetof(AdamOptions, decoupled) == 40);
} // namespace tcht

extern "C" {
// Every list has `count` tensors. `buffers` is null if the momentum is 0. The
// gradients are divided by `grad_scale`, in place; nothing else changes if
// `found_inf` is 1. Both are float32 tensors on the device of the lists, or null.
int tcht_fused_sgd(
    at::Tensor* const* parameters,
    at::Tensor* const* gradients,
    at::Tensor* const* buffers,
    size_t count,
    const tcht::SgdOptions* options,
    at::Tensor* grad_scale,
    at::Tensor* found_inf);
// `steps` are float32 scalars, which this call increments unless `found_inf` is 1.
int tcht_fused_adam(
    at::Tensor* const* parameters,
    at::Tensor* const* gradients,
    at::Tensor* const* first_moments,
    at::Tensor* const* second_moments,
    at::Tensor* const* steps,
    size_t count,
    const tcht::AdamOptions* options,
    at::Tensor* grad_scale,
    at::Tensor* found_inf);
int tcht_foreach_zero(at::Tensor* const* tensors, size_t count);
int tcht_foreach_mul(at::Tensor* const* tensors, size_t count, double factor);
// averages = averages * decay + values * (1 - decay)
int tcht_foreach_ema(at::Tensor* const* averages, at::Tensor* const* values, size_t count, double decay);
// torch.nn.utils.clip_grad_norm_ for the 2-norm. `*norm` is a new handle of a
// scalar tensor.
int tcht_clip_grad_norm(at::Tensor* const* gradients, size_t count, double max_norm, at::Tensor** norm);
// What a gradient scaler does before a step: multiplies the gradients by
// `inverse_scale`, and sets `found_inf` to 1 if any of them is not finite.
int tcht_amp_unscale(
    at::Tensor* const* gradients,
    size_t count,
    at::Tensor* found_inf,
    at::Tensor* inverse_scale);
// What a step on gradients of a loss that was multiplied by `scale` needs. The
// handles are new, of scalar tensors on the device of `scale`: the norm without
// the scale, what the gradients must be divided by so that they have no scale and
// at most the norm `max_norm`, and 1 if any of them is not finite.
int tcht_clip_scaled(
    at::Tensor* const* gradients,
    size_t count,
    double max_norm,
    at::Tensor* scale,
    at::Tensor** norm,
    at::Tensor** grad_scale,
    at::Tensor** found_inf);
// What a gradient scaler does after a step: lowers the scale if `found_inf` is 1,
// and raises it after `growth_interval` steps without. `tracker` is an int32.
int tcht_amp_update_scale(
    at::Tensor* scale,
    at::Tensor* tracker,
    at::Tensor* found_inf,
    double growth_factor,
    double backoff_factor,
    int64_t growth_interval);
}
