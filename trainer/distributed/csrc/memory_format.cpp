#include "memory_format.h"

#include <ATen/core/grad_mode.h>

#include "error.h"

extern "C" {

int tchd_to_channels_last(at::Tensor* tensor, at::Tensor** out) {
  return tchd::guarded([&] { *out = new at::Tensor(tensor->contiguous(at::MemoryFormat::ChannelsLast)); });
}

int tchd_set_channels_last(at::Tensor* parameter) {
  return tchd::guarded([&] {
    at::NoGradGuard no_grad;
    parameter->set_data(parameter->detach().contiguous(at::MemoryFormat::ChannelsLast));
  });
}

int tchd_is_channels_last(at::Tensor* tensor, int* answer) {
  return tchd::guarded(
      [&] { *answer = tensor->dim() == 4 && tensor->is_contiguous(at::MemoryFormat::ChannelsLast); });
}

} // extern "C"
