#include "memory_format.h"

#include <ATen/core/grad_mode.h>

#include "shim/error.h"

extern "C" {

int tcht_to_channels_last(at::Tensor* tensor, at::Tensor** out) {
  return tcht::guarded([&] { *out = new at::Tensor(tensor->contiguous(at::MemoryFormat::ChannelsLast)); });
}

int tcht_set_channels_last(at::Tensor* parameter) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    parameter->set_data(parameter->detach().contiguous(at::MemoryFormat::ChannelsLast));
  });
}

int tcht_is_channels_last(at::Tensor* tensor, int* answer) {
  return tcht::guarded(
      [&] { *answer = tensor->dim() == 4 && tensor->is_contiguous(at::MemoryFormat::ChannelsLast); });
}

} // extern "C"
