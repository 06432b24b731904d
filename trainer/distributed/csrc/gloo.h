// Joins a group of ranks over gloo, which takes CPU and CUDA tensors.
#pragma once

#include <cstdint>

#include "process_group.h"
#include "store.h"

extern "C" {
// Exactly one of `address` (host name or address to bind) and `interface_name` is
// not null. Keys in the store are prefixed with `name`. Blocks until all ranks
// have joined.
int tchd_group_gloo(
    tchd::Store* store,
    const char* name,
    int rank,
    int world,
    const char* address,
    const char* interface_name,
    int64_t timeout_ms,
    int threads,
    tchd::ProcessGroup** out);
}
