// Batch normalization in training mode followed by SiLU, in one operation, for
// float32 tensors on the CPU.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

extern "C" {
// 1 if the operation runs on all threads of libtorch, 0 if on one of several.
int tcht_batch_norm_silu_uses_threads();

// `*out` is a new handle. The running statistics are updated in place.
int tcht_batch_norm_silu(
    at::Tensor* input,
    at::Tensor* weight,
    at::Tensor* bias,
    at::Tensor* running_mean,
    at::Tensor* running_var,
    double momentum,
    double eps,
    at::Tensor** out);
}
