// The channels_last layout of (N, C, H, W) tensors.
#pragma once

#include <ATen/core/Tensor.h>

extern "C" {
// `*out` is a new handle: of a copy in channels_last, or of the same tensor if
// it already has that layout.
int tcht_to_channels_last(at::Tensor* tensor, at::Tensor** out);
// Changes the layout of a parameter in place: it stays the same leaf.
int tcht_set_channels_last(at::Tensor* parameter);
int tcht_is_channels_last(at::Tensor* tensor, int* answer);
}
