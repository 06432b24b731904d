// What a program does with a group whose CUDA tensors go over NCCL, and what the
// NCCL plugin needs of a group. The plugin is a library of its own, in nccl/,
// because the program must start without libtorch_cuda.
#pragma once

#include "process_group.h"

namespace tchd {
// Aborts collectives over NCCL, on any thread.
struct NcclAbort {
  c10::intrusive_ptr<c10d::Backend> backend;
};
} // namespace tchd

extern "C" {
// The version of libtorch whose headers this shim was built with.
const char* tchd_torch_version();
// The group as the plugin takes it. It is valid as long as `group`.
c10d::ProcessGroup* tchd_group_c10d(tchd::ProcessGroup* group);
// The functions below fail if CUDA tensors of the group do not go over NCCL.
//
// What NCCL's watchdog found: 0 no error, 1 a time-out, 2 an error, 3 an error of
// another rank.
int tchd_nccl_error(tchd::ProcessGroup* group, int* out);
int tchd_nccl_abort_new(tchd::ProcessGroup* group, tchd::NcclAbort** out);
// Ends the collectives over NCCL that wait. The group is unusable afterwards.
int tchd_nccl_abort(tchd::NcclAbort* abort);
void tchd_nccl_abort_free(tchd::NcclAbort* abort);
}
