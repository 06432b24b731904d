// Process-wide settings of libtorch.
#pragma once

#include <cstdint>

extern "C" {
int tcht_set_num_threads(int32_t threads);
// Selects deterministic algorithms. An operation that has none fails, or only
// warns if `warn_only`. Also stops cuDNN from choosing algorithms by benchmark.
int tcht_set_deterministic(int32_t enabled, int32_t warn_only);
int tcht_deterministic(int32_t* enabled, int32_t* warn_only);
// cuDNN tries its algorithms for each new shape and keeps the fastest. With
// deterministic algorithms it stays off.
int tcht_set_cudnn_benchmark(int32_t enabled);
int tcht_cudnn_benchmark(int32_t* enabled);
// TF32 in matrix products (cuBLAS) and convolutions (cuDNN).
int tcht_set_allow_tf32(int32_t enabled);
// `*enabled` is 1 only if both may use TF32.
int tcht_allow_tf32(int32_t* enabled);
}
