#include "gloo.h"

#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "shim/error.h"

extern "C" {

int tchd_gloo_device(const char* address, const char* interface_name, tchd::GlooDevice** out) {
  return tchd::guarded([&] {
    *out = new tchd::GlooDevice{
        interface_name != nullptr ? c10d::ProcessGroupGloo::createDeviceForInterface(interface_name)
                                  : c10d::ProcessGroupGloo::createDeviceForHostname(address)};
  });
}

void tchd_gloo_device_free(tchd::GlooDevice* device) {
  tchd::guarded([&] { delete device; });
}

int tchd_group_gloo(
    tchd::Store* store,
    const char* name,
    int rank,
    int world,
    tchd::GlooDevice* device,
    int64_t timeout_ms,
    int threads,
    tchd::ProcessGroup** out) {
  return tchd::guarded([&] {
    auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::milliseconds(timeout_ms));
    options->devices.push_back(device->device);
    options->threads = threads;

    auto group_store = c10::make_intrusive<c10d::PrefixStore>(std::string(name), store->store);
    auto gloo_store = c10::make_intrusive<c10d::PrefixStore>("gloo", group_store);
    auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(gloo_store, rank, world, options);
    backend->setSequenceNumberForGroup();

    auto group = c10::make_intrusive<c10d::ProcessGroup>(group_store, rank, world);
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, backend);
    // In collectives, gloo copies CUDA tensors through the memory of the host;
    // without this, c10d refuses them. In send and recv it does not: messages.rs
    // passes it CPU tensors only. The NCCL plugin replaces it.
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::GLOO, backend);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    group->setGroupName(name);
    group->setGroupDesc(name);
    *out = new tchd::ProcessGroup{std::move(group)};
  });
}

} // extern "C"
