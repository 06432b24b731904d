// Tensors cross the C ABI as the pointers that tch holds (`at::Tensor*`).
// The caller keeps them; this side copies the reference-counted handles.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tchd {

inline std::vector<at::Tensor> to_vector(at::Tensor* const* tensors, size_t count) {
  std::vector<at::Tensor> list;
  list.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    list.push_back(*tensors[i]);
  }
  return list;
}

} // namespace tchd
