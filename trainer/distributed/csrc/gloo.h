// Joins a group of ranks over gloo, which takes CPU and CUDA tensors.
#pragma once

#include <cstdint>
#include <memory>

#include "process_group.h"
#include "store.h"

namespace gloo::transport {
class Device;
} // namespace gloo::transport

namespace tchd {
// The socket on which gloo listens.
struct GlooDevice {
  std::shared_ptr<gloo::transport::Device> device;
};
} // namespace tchd

extern "C" {
// Exactly one of `address` (host name or address to bind) and `interface_name` is
// not null.
int tchd_gloo_device(const char* address, const char* interface_name, tchd::GlooDevice** out);
void tchd_gloo_device_free(tchd::GlooDevice* device);
// Keys in the store are prefixed with `name`. Blocks until all ranks have joined.
int tchd_group_gloo(
    tchd::Store* store,
    const char* name,
    int rank,
    int world,
    tchd::GlooDevice* device,
    int64_t timeout_ms,
    int threads,
    tchd::ProcessGroup** out);
}
