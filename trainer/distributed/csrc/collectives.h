// The collectives of a group, one function each. They start the work and return
// it; free it with tchd_work_free. Tensors are dense and contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

#include "process_group.h"
#include "work.h"

extern "C" {
// `operation` is a c10d::ReduceOp::RedOpType. `factor` is that of PREMUL_SUM.
// `timeout_ms` limits the wait for each other rank.
int tchd_all_reduce(
    tchd::ProcessGroup* group,
    at::Tensor* tensor,
    int operation,
    double factor,
    int64_t timeout_ms,
    tchd::Work** out);
// The result is in `tensor` on rank `root`; on other ranks it is undefined.
int tchd_reduce(
    tchd::ProcessGroup* group,
    at::Tensor* tensor,
    int root,
    int operation,
    double factor,
    int64_t timeout_ms,
    tchd::Work** out);
// `input` has one part per rank, each with the size of `output`.
int tchd_reduce_scatter(
    tchd::ProcessGroup* group,
    at::Tensor* output,
    at::Tensor* input,
    int operation,
    double factor,
    int64_t timeout_ms,
    tchd::Work** out);
// `outputs` has one tensor per rank, each with the shape of `input`.
int tchd_all_gather(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* const* outputs,
    size_t world,
    int64_t timeout_ms,
    tchd::Work** out);
// `outputs` has one tensor per rank on rank `root`, and none on the others.
int tchd_gather(
    tchd::ProcessGroup* group,
    at::Tensor* input,
    at::Tensor* const* outputs,
    size_t count,
    int root,
    int64_t timeout_ms,
    tchd::Work** out);
// `inputs` has one tensor per rank on rank `root`, and none on the others.
int tchd_scatter(
    tchd::ProcessGroup* group,
    at::Tensor* output,
    at::Tensor* const* inputs,
    size_t count,
    int root,
    int64_t timeout_ms,
    tchd::Work** out);
// The sizes are those of the parts for and from each rank, along the first
// dimension.
int tchd_all_to_all(
    tchd::ProcessGroup* group,
    at::Tensor* output,
    at::Tensor* input,
    const int64_t* output_sizes,
    const int64_t* input_sizes,
    size_t world,
    int64_t timeout_ms,
    tchd::Work** out);
int tchd_send(tchd::ProcessGroup* group, at::Tensor* tensor, int rank, int tag, tchd::Work** out);
// From any rank if `rank` is negative.
int tchd_receive(tchd::ProcessGroup* group, at::Tensor* tensor, int rank, int tag, tchd::Work** out);
}
