#include "nccl.h"

#include <torch/version.h>

#include "shim/error.h"

namespace {

c10::intrusive_ptr<c10d::Backend> nccl_backend(tchd::ProcessGroup* group) {
  auto backend = group->group->getBackend(c10::DeviceType::CUDA);
  const std::string name = backend->getBackendName();
  TORCH_CHECK(name == "nccl", "CUDA tensors of this group go over ", name, ", not over nccl");
  return backend;
}

} // namespace

extern "C" {

const char* tchd_torch_version() {
  return TORCH_VERSION;
}

c10d::ProcessGroup* tchd_group_c10d(tchd::ProcessGroup* group) {
  return group->group.get();
}

int tchd_nccl_error(tchd::ProcessGroup* group, int* out) {
  return tchd::guarded([&] { *out = static_cast<int>(nccl_backend(group)->getError()); });
}

int tchd_nccl_abort_new(tchd::ProcessGroup* group, tchd::NcclAbort** out) {
  return tchd::guarded([&] { *out = new tchd::NcclAbort{nccl_backend(group)}; });
}

int tchd_nccl_abort(tchd::NcclAbort* abort) {
  return tchd::guarded([&] { abort->backend->abort(); });
}

void tchd_nccl_abort_free(tchd::NcclAbort* abort) {
  tchd::guarded([&] { delete abort; });
}

} // extern "C"
