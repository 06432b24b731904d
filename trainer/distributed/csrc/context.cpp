#include "context.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "error.h"

extern "C" {

int tchd_set_num_threads(int32_t threads) {
  return tchd::guarded([&] { at::set_num_threads(threads); });
}

int tchd_set_deterministic(int32_t enabled, int32_t warn_only) {
  return tchd::guarded([&] {
    auto& context = at::globalContext();
    context.setDeterministicAlgorithms(enabled != 0, warn_only != 0);
    context.setDeterministicCuDNN(enabled != 0);
    if (enabled != 0) {
      context.setBenchmarkCuDNN(false);
    }
  });
}

int tchd_set_allow_tf32(int32_t enabled) {
  return tchd::guarded([&] {
    auto& context = at::globalContext();
    context.setAllowTF32CuBLAS(enabled != 0);
    context.setAllowTF32CuDNN(enabled != 0);
  });
}

} // extern "C"
