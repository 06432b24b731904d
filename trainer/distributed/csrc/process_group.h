// A group of ranks, and what it does with several tensors or none. Each backend
// joins a group in a file of its own, such as gloo.h.
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
// Overwrites the tensors with those of rank `root`, several per message.
int tchd_group_broadcast(tchd::ProcessGroup* group, at::Tensor* const* tensors, size_t count, int root);
int tchd_group_barrier(tchd::ProcessGroup* group, int64_t timeout_ms);
// A barrier whose error on rank 0 names all ranks that did not arrive.
int tchd_group_monitored_barrier(tchd::ProcessGroup* group, int64_t timeout_ms);
// Limits each later wait for another rank that has no limit of its own.
int tchd_group_set_timeout(tchd::ProcessGroup* group, int64_t timeout_ms);
// Fails unless the tensors have the same shapes on all ranks.
int tchd_group_verify_shapes(tchd::ProcessGroup* group, at::Tensor* const* tensors, size_t count);
void tchd_group_free(tchd::ProcessGroup* group);
}
