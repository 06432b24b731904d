#include "context.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "shim/error.h"

extern "C" {

int tcht_set_num_threads(int32_t threads) {
  return tcht::guarded([&] { at::set_num_threads(threads); });
}

int tcht_set_deterministic(int32_t enabled, int32_t warn_only) {
  return tcht::guarded([&] {
    auto& context = at::globalContext();
    context.setDeterministicAlgorithms(enabled != 0, warn_only != 0);
    context.setDeterministicCuDNN(enabled != 0);
    if (enabled != 0) {
      context.setBenchmarkCuDNN(false);
      // libtorch would also fill every new tensor, which finds reads of memory
      // that nothing has written, and costs time in each operation.
      context.setDeterministicFillUninitializedMemory(false);
    }
  });
}

int tcht_deterministic(int32_t* enabled, int32_t* warn_only) {
  return tcht::guarded([&] {
    const auto& context = at::globalContext();
    *enabled = context.deterministicAlgorithms() ? 1 : 0;
    *warn_only = context.deterministicAlgorithmsWarnOnly() ? 1 : 0;
  });
}

int tcht_set_cudnn_benchmark(int32_t enabled) {
  return tcht::guarded([&] {
    auto& context = at::globalContext();
    context.setBenchmarkCuDNN(enabled != 0 && !context.deterministicAlgorithms());
  });
}

int tcht_cudnn_benchmark(int32_t* enabled) {
  return tcht::guarded([&] { *enabled = at::globalContext().benchmarkCuDNN() ? 1 : 0; });
}

int tcht_set_allow_tf32(int32_t enabled) {
  return tcht::guarded([&] {
    auto& context = at::globalContext();
    context.setAllowTF32CuBLAS(enabled != 0);
    context.setAllowTF32CuDNN(enabled != 0);
  });
}

int tcht_allow_tf32(int32_t* enabled) {
  return tcht::guarded([&] {
    const auto& context = at::globalContext();
    *enabled = context.allowTF32CuBLAS() && context.allowTF32CuDNN() ? 1 : 0;
  });
}

} // extern "C"
