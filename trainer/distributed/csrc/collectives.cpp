#include "collectives.h"

#include <chrono>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

#include "shim/error.h"
#include "shim/tensors.h"

namespace {

c10d::ReduceOp reduce_op(int operation, double factor) {
  const auto type = static_cast<c10d::ReduceOp::RedOpType>(operation);
  return type == c10d::ReduceOp::PREMUL_SUM ? c10d::makeNCCLPreMulSum(factor) : c10d::ReduceOp(type);
}

// Runs `start` without autograd and gives the work to the caller.
template <class Start>
int started(tchd::Work** out, Start&& start) {
  return tchd::guarded([&] {
    at::NoGradGuard no_grad;
    auto work = start();
    TORCH_CHECK(work, "the backend returned no work");
    *out = new tchd::Work{std::move(work)};
  });
}

template <class Options>
Options with_timeout(int64_t timeout_ms) {
  Options options;
  options.timeout = std::chrono::milliseconds(timeout_ms);
  return options;
}

// One list of tensors, or none.
std::vector<std::vector<at::Tensor>> lists(at::Tensor* const* tensors, size_t count) {
  if (count == 0) {
    return {};
  }
  return {tchd::to_vector(tensors, count)};
}

} // namespace

extern "C" {

int tchd_all_reduce(
    tchd::ProcessGroup* group,
    at::Tensor* tensor,
    int operation,
    double factor,
    int64_t timeout_ms,
    tchd::Work** out) {
  return started(out, [&] {
    std::vector<at::Tensor> tensors{*tensor};
    auto options = with_timeout<c10d::AllreduceOptions>(timeout_ms);
    options.reduceOp = reduce_op(operation, factor);
    return group->group->allreduce(tensors, options);
  });
}

int tchd_reduce(
    tchd::ProcessGroup* group,
    at::Tensor* tensor,
    int root,
    int operation,
    double factor,
    int64_t timeout_ms,
    tchd::Work** out) {
  return started(out, [&] {
    std::vector<at::Tensor> tensors{*tensor};
    auto options = with_timeout<c10d::ReduceOptions>(timeout_ms);
    options.reduceOp = reduce_op(operation, factor);
    options.rootRank = root;
    return group->group->reduce(tensors, options);
  });
}

int tchd_reduce_scatter(
    tchd::ProcessGroup* group,
    at::Tensor* output,
    at::Tensor* input,
    int operation,
    double factor,
    int64_t timeout_ms,
    tchd::Work** out) {
  return started(out, [&] {
    auto options = with_timeout<c10d::ReduceScatterOptions>(timeout_ms);
    options.reduceOp = reduce_op(operation, factor);
    return group->group->_reduce_scatter_base(*output, *input, options);
  });
}

int tchd_all_gather(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* const* outputs,
    size_t world,
    int64_t timeout_ms,
    tchd::Work** out) {
  return started(out, [&] {
    auto gathered = lists(outputs, world);
    std::vector<at::Tensor> inputs{*input};
    return group->group->allgather(gathered, inputs, with_timeout<c10d::AllgatherOptions>(timeout_ms));
  });
}

int tchd_gather(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* const* outputs,
    size_t count,
    int root,
    int64_t timeout_ms,
    tchd::Work** out) {
  return started(out, [&] {
    auto gathered = lists(outputs, count);
    std::vector<at::Tensor> inputs{*input};
    auto options = with_timeout<c10d::GatherOptions>(timeout_ms);
    options.rootRank = root;
    return group->group->gather(gathered, inputs, options);
  });
}

int tchd_scatter(
    tchd::ProcessGroup* group,
    at::Tensor* output,
    at::Tensor* const* inputs,
    size_t count,
    int root,
    int64_t timeout_ms,
    tchd::Work** out) {
  return started(out, [&] {
    std::vector<at::Tensor> outputs{*output};
    auto scattered = lists(inputs, count);
    auto options = with_timeout<c10d::ScatterOptions>(timeout_ms);
    options.rootRank = root;
    return group->group->scatter(outputs, scattered, options);
  });
}

int tchd_all_to_all(
    tchd::ProcessGroup* group,
    at::Tensor* output,
    at::Tensor* input,
    const int64_t* output_sizes,
    const int64_t* input_sizes,
    size_t world,
    int64_t timeout_ms,
    tchd::Work** out) {
  return started(out, [&] {
    std::vector<int64_t> to(output_sizes, output_sizes + world);
    std::vector<int64_t> from(input_sizes, input_sizes + world);
    return group->group->alltoall_base(
        *output, *input, to, from, with_timeout<c10d::AllToAllOptions>(timeout_ms));
  });
}

int tchd_send(tchd::ProcessGroup* group, at::Tensor* tensor, int rank, int tag, tchd::Work** out) {
  return started(out, [&] {
    std::vector<at::Tensor> tensors{*tensor};
    return group->group->send(tensors, rank, tag);
  });
}

int tchd_receive(tchd::ProcessGroup* group, at::Tensor* tensor, int rank, int tag, tchd::Work** out) {
  return started(out, [&] {
    std::vector<at::Tensor> tensors{*tensor};
    return rank < 0 ? group->group->recvAnysource(tensors, tag) : group->group->recv(tensors, rank, tag);
  });
}

} // extern "C"
