// The channels_last layout of (N, C, H, W) tensors.
#pragma once

#include <ATen/core/Tensor.h>

extern "C" {
// `*out` is a new tensor in channels_last, or the same one if it is already.
int tchd_to_channels_last(at::Tensor* tensor, at::Tensor** out);
// Changes the layout of a parameter in place: it stays the same leaf.
int tchd_set_channels_last(at::Tensor* parameter);
int tchd_is_channels_last(at::Tensor* tensor, int* answer);
}
