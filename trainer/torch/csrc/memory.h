// The memory that libtorch has taken on a GPU.
#pragma once

#include <cstdint>

extern "C" {
// The most bytes that libtorch has reserved on this CUDA device.
int tcht_peak_reserved_memory(int32_t device, uint64_t* bytes);
}
