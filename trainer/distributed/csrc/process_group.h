// A group of ranks, and its collectives. Each backend joins a group in a file of
// its own, such as gloo.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace tchd {
struct ProcessGroup {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};
} // namespace tchd

extern "C" {
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
