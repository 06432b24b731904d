#include "process_group.h"

#include <chrono>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "shim/error.h"
#include "shim/tensors.h"

namespace {

// The size of the messages into which tensors are flattened, as in DDP.
constexpr size_t kBroadcastBufferBytes = 250 * 1024 * 1024;

} // namespace

extern "C" {

int tchd_group_broadcast(tchd::ProcessGroup* group, at::Tensor* const* tensors, size_t count, int root) {
  return tchd::guarded([&] {
    at::NoGradGuard no_grad;
    c10d::broadcast_coalesced(group->group, tchd::to_vector(tensors, count), kBroadcastBufferBytes, root);
  });
}

int tchd_group_barrier(tchd::ProcessGroup* group, int64_t timeout_ms) {
  return tchd::guarded([&] {
    c10d::BarrierOptions options;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    group->group->barrier(options)->wait();
  });
}

int tchd_group_monitored_barrier(tchd::ProcessGroup* group, int64_t timeout_ms) {
  return tchd::guarded([&] {
    c10d::BarrierOptions options;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    group->group->monitoredBarrier(options, /*wait_all_ranks=*/true);
  });
}

int tchd_group_set_timeout(tchd::ProcessGroup* group, int64_t timeout_ms) {
  return tchd::guarded([&] { group->group->setTimeout(std::chrono::milliseconds(timeout_ms)); });
}

int tchd_group_verify_shapes(tchd::ProcessGroup* group, at::Tensor* const* tensors, size_t count) {
  return tchd::guarded([&] {
    c10d::verify_params_across_processes(group->group, tchd::to_vector(tensors, count), std::nullopt);
  });
}

void tchd_group_free(tchd::ProcessGroup* group) {
  tchd::guarded([&] { delete group; });
}

} // extern "C"
