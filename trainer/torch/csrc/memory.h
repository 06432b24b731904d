// The memory that libtorch has taken on a GPU.
#pragma once

#include <cstdint>

extern "C" {
// The bytes that libtorch has reserved on this CUDA device, and the most so far.
int tcht_reserved_memory(int32_t device, uint64_t* bytes, uint64_t* peak);

// Returns what libtorch keeps for reuse on all CUDA devices to the driver, begins a new peak on this one, and
// says how many bytes the driver still has.
int tcht_release_memory(int32_t device, uint64_t* free);
}
