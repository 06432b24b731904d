// A group of ranks that communicate through gloo, and its collectives.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "store.h"

namespace tchd {
struct ProcessGroup {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};
} // namespace tchd

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
// Sums `tensor` over all ranks, in place.
int tchd_group_all_reduce(tchd::ProcessGroup* group, at::Tensor* tensor);
// Overwrites the tensors with those of rank `root`, several per message.
int tchd_group_broadcast(tchd::ProcessGroup* group, at::Tensor* const* tensors, size_t count, int root);
// `outputs` has one tensor per rank, each with the shape of `input`.
int tchd_group_all_gather(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* const* outputs,
    size_t world);
int tchd_group_barrier(tchd::ProcessGroup* group, int64_t timeout_ms);
// Fails unless the tensors have the same shapes on all ranks.
int tchd_group_verify_shapes(tchd::ProcessGroup* group, at::Tensor* const* tensors, size_t count);
void tchd_group_free(tchd::ProcessGroup* group);
}
