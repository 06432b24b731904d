#include "optimizer.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "shim/error.h"
#include "shim/tensors.h"

namespace {

// torch.nn.utils.clip_grad_norm_ divides by the norm plus this.
constexpr double kClipEpsilon = 1e-6;

// The tensors by device, in the order in which devices first appear. The lists
// of foreach operations are fast only on one device, and norms can be stacked
// only there.
std::vector<std::vector<at::Tensor>> by_device(const std::vector<at::Tensor>& list) {
  std::vector<std::vector<at::Tensor>> groups;
  for (const auto& tensor : list) {
    const auto same = [&](const auto& group) { return group.front().device() == tensor.device(); };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) {
      groups.push_back({tensor});
    } else {
      found->push_back(tensor);
    }
  }
  return groups;
}

// The 2-norm of all tensors of a list, which are on one device.
at::Tensor norm_of(const std::vector<at::Tensor>& list) {
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(list, 2)), 2);
}

// The 2-norm of all tensors of the groups, on the device of the first group.
at::Tensor norm_of_groups(const std::vector<std::vector<at::Tensor>>& groups) {
  auto total = norm_of(groups.front());
  if (groups.size() == 1) {
    return total;
  }
  std::vector<at::Tensor> norms = {total};
  for (size_t i = 1; i < groups.size(); ++i) {
    norms.push_back(norm_of(groups[i]).to(total.device()));
  }
  return at::linalg_vector_norm(at::stack(norms), 2);
}

// A tensor that the caller may omit with a null pointer.
std::optional<at::Tensor> optional(const at::Tensor* tensor) {
  return tensor == nullptr ? std::nullopt : std::optional<at::Tensor>(*tensor);
}

} // namespace

extern "C" {

int tcht_fused_sgd(
    at::Tensor* const* parameters,
    at::Tensor* const* gradients,
    at::Tensor* const* buffers,
    size_t count,
    const tcht::SgdOptions* options,
    at::Tensor* grad_scale,
    at::Tensor* found_inf) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    at::_fused_sgd_(
        tcht::to_vector(parameters, count),
        tcht::to_vector(gradients, count),
        tcht::to_vector(buffers, buffers == nullptr ? 0 : count),
        options->weight_decay,
        options->momentum,
        options->lr,
        options->dampening,
        options->nesterov != 0,
        /*maximize=*/false,
        options->first_step != 0,
        optional(grad_scale),
        optional(found_inf));
  });
}

int tcht_fused_adam(
    at::Tensor* const* parameters,
    at::Tensor* const* gradients,
    at::Tensor* const* first_moments,
    at::Tensor* const* second_moments,
    at::Tensor* const* steps,
    size_t count,
    const tcht::AdamOptions* options,
    at::Tensor* grad_scale,
    at::Tensor* found_inf) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    const auto parameter_list = tcht::to_vector(parameters, count);
    const auto gradient_list = tcht::to_vector(gradients, count);
    const auto first_list = tcht::to_vector(first_moments, count);
    const auto second_list = tcht::to_vector(second_moments, count);
    const auto step_list = tcht::to_vector(steps, count);
    at::_foreach_add_(step_list, 1);
    auto step = [&](auto kernel) {
      kernel(
          parameter_list,
          gradient_list,
          first_list,
          second_list,
          at::TensorList{},
          step_list,
          options->lr,
          options->beta1,
          options->beta2,
          options->weight_decay,
          options->eps,
          /*amsgrad=*/false,
          /*maximize=*/false,
          optional(grad_scale),
          optional(found_inf));
    };
    if (options->decoupled != 0) {
      step([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    } else {
      step([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    }
    if (found_inf != nullptr) {
      // A step that was skipped does not count. Whether it was is known only on
      // the device.
      at::_foreach_sub_(step_list, std::vector<at::Tensor>(count, *found_inf));
    }
  });
}

int tcht_foreach_zero(at::Tensor* const* tensors, size_t count) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    at::_foreach_zero_(tcht::to_vector(tensors, count));
  });
}

int tcht_foreach_mul(at::Tensor* const* tensors, size_t count, double factor) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    at::_foreach_mul_(tcht::to_vector(tensors, count), factor);
  });
}

int tcht_foreach_ema(at::Tensor* const* averages, at::Tensor* const* values, size_t count, double decay) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    const auto average_list = tcht::to_vector(averages, count);
    at::_foreach_mul_(average_list, decay);
    at::_foreach_add_(average_list, tcht::to_vector(values, count), 1 - decay);
  });
}

int tcht_clip_grad_norm(at::Tensor* const* gradients, size_t count, double max_norm, at::Tensor** norm) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    const auto groups = by_device(tcht::to_vector(gradients, count));
    const auto total = norm_of_groups(groups);
    // Multiply even if the factor is 1: testing it would wait for the device.
    const auto factor = (max_norm / (total + kClipEpsilon)).clamp_max(1.0);
    for (const auto& group : groups) {
      at::_foreach_mul_(group, factor.to(group.front().device()));
    }
    *norm = new at::Tensor(total);
  });
}

int tcht_amp_unscale(
    at::Tensor* const* gradients,
    size_t count,
    at::Tensor* found_inf,
    at::Tensor* inverse_scale) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    at::_amp_foreach_non_finite_check_and_unscale_(
        tcht::to_vector(gradients, count), *found_inf, *inverse_scale);
  });
}

int tcht_clip_scaled(
    at::Tensor* const* gradients,
    size_t count,
    double max_norm,
    at::Tensor* scale,
    at::Tensor** norm,
    at::Tensor** grad_scale,
    at::Tensor** found_inf) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    auto total = norm_of_groups(by_device(tcht::to_vector(gradients, count))).to(scale->device());
    auto infinite = at::zeros_like(total);
    // The norm is finite only if all gradients are, so testing it is enough. This
    // one kernel also divides it by the scale.
    at::_amp_foreach_non_finite_check_and_unscale_({total}, infinite, scale->reciprocal());
    // The inverse of the factor of clipping: dividing by a factor above 1 clips.
    const auto divisor = ((total + kClipEpsilon) / max_norm).clamp_min(1.0) * *scale;
    *norm = new at::Tensor(total);
    *grad_scale = new at::Tensor(divisor);
    *found_inf = new at::Tensor(infinite);
  });
}

int tcht_amp_update_scale(
    at::Tensor* scale,
    at::Tensor* tracker,
    at::Tensor* found_inf,
    double growth_factor,
    double backoff_factor,
    int64_t growth_interval) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    at::_amp_update_scale_(*scale, *tracker, *found_inf, growth_factor, backoff_factor, growth_interval);
  });
}

} // extern "C"
