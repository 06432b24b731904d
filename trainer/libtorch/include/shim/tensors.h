// Tensors cross the C ABI as the pointers that tch holds (`at::Tensor*`). The
// caller owns them; a shim copies the reference-counted handles.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#ifndef SHIM_NAMESPACE
#error "define SHIM_NAMESPACE as the namespace of this shim"
#endif

namespace SHIM_NAMESPACE {

inline std::vector<at::Tensor> to_vector(at::Tensor* const* tensors, size_t count) {
  std::vector<at::Tensor> list;
  list.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    list.push_back(*tensors[i]);
  }
  return list;
}

} // namespace SHIM_NAMESPACE
