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

int tchd_group_all_reduce(tchd::ProcessGroup* group, at::Tensor* tensor) {
  return tchd::guarded([&] {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> tensors{*tensor};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::SUM;
    group->group->allreduce(tensors, options)->wait();
  });
}

int tchd_group_broadcast(tchd::ProcessGroup* group, at::Tensor* const* tensors, size_t count, int root) {
  return tchd::guarded([&] {
    at::NoGradGuard no_grad;
    c10d::broadcast_coalesced(group->group, tchd::to_vector(tensors, count), kBroadcastBufferBytes, root);
  });
}

int tchd_group_all_gather(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* const* outputs,
    size_t world) {
  return tchd::guarded([&] {
    at::NoGradGuard no_grad;
    std::vector<std::vector<at::Tensor>> gathered{tchd::to_vector(outputs, world)};
    std::vector<at::Tensor> inputs{*input};
    group->group->allgather(gathered, inputs)->wait();
  });
}

int tchd_group_barrier(tchd::ProcessGroup* group, int64_t timeout_ms) {
  return tchd::guarded([&] {
    c10d::BarrierOptions options;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    group->group->barrier(options)->wait();
  });
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
