// Batch normalization in training mode with the statistics of the batches of
// all ranks together.
#pragma once

#include <ATen/core/Tensor.h>

#include "process_group.h"

extern "C" {
// `input` is (N, C, ...). `running_mean` and `running_var` may be null, and are
// updated in place. `*out` is a new handle that the caller owns.
int tchd_sync_batch_norm(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* weight,
    at::Tensor* bias,
    at::Tensor* running_mean,
    at::Tensor* running_var,
    double momentum,
    double eps,
    at::Tensor** out);
}
