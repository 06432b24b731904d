// Process-wide switches of libtorch.
#pragma once

#include <cstdint>

extern "C" {
int tchd_set_num_threads(int32_t threads);
// Deterministic algorithms where there are any, an error where there are none
// (`warn_only`: a warning). Also stops cuDNN from choosing by benchmark.
int tchd_set_deterministic(int32_t enabled, int32_t warn_only);
// TF32 in matrix products and convolutions on CUDA.
int tchd_set_allow_tf32(int32_t enabled);
}
