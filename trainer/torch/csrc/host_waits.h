// Counts how often the host waits for a GPU.
#pragma once

#include <cstdint>

extern "C" {
// The waits of this process since the first call, which begins to count. libtorch
// accepts one observer per process, so this fails if another was there first.
int tcht_host_waits(uint64_t* waits);
}
