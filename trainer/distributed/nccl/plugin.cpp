#include "plugin.h"

#include <chrono>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/version.h>

#include "shim/error.h"

TCHN_EXPORT int tchn_interface() {
  return TCHN_INTERFACE;
}

TCHN_EXPORT const char* tchn_last_error() {
  return tchn::last_error().c_str();
}

TCHN_EXPORT int tchn_versions(const char** torch, int* nccl_built, int* nccl_loaded) {
  return tchn::guarded([&] {
    *torch = TORCH_VERSION;
    *nccl_built = NCCL_VERSION_CODE;
    const ncclResult_t result = ncclGetVersion(nccl_loaded);
    TORCH_CHECK(result == ncclSuccess, "NCCL does not state its version: ", ncclGetErrorString(result));
  });
}

TCHN_EXPORT int tchn_join(c10d::ProcessGroup* group, int device, int64_t timeout_ms) {
  return tchn::guarded([&] {
    const at::Device own(at::kCUDA, static_cast<c10::DeviceIndex>(device));
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::milliseconds(timeout_ms);
    auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", group->getStore());
    auto backend =
        c10::make_intrusive<c10d::ProcessGroupNCCL>(store, group->getRank(), group->getSize(), options);
    backend->setSequenceNumberForGroup();
    // With a bound device, the communicator is made here, and not in the first
    // collective, where its errors would surprise.
    backend->setBoundDeviceId(own);
    backend->eagerConnectSingleDevice(own);
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, backend);
    // setBackend has replaced it by that of the group, which has none.
    backend->setBoundDeviceId(own);
  });
}
