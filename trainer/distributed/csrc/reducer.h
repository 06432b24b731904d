// The engine of DistributedDataParallel: averages gradients over the ranks,
// bucket by bucket, while the backward pass is still running.
#pragma once

#include <cstddef>
#include <cstdint>

#include "process_group.h"

namespace tchd {
class Reducer;

struct ReducerOptions {
  int64_t bucket_bytes;
  int64_t first_bucket_bytes;
  int32_t find_unused_parameters;
  int32_t gradient_as_bucket_view;
  // 0: send as is, 1: send as float16, 2: send as is and record each launch,
  // 3: send as bfloat16.
  int32_t hook;
  int32_t static_graph;
};

struct ReducerStats {
  int64_t buckets;
  int64_t rebuilt;
  // Averages over the sampled steps, in nanoseconds.
  int64_t forward_ns;
  int64_t backward_ns;
  int64_t communication_ns;
  int64_t overlap_ns;
};

// The start of the all-reduce of one bucket.
struct BucketLaunch {
  int64_t bucket;
  int64_t elements;
  // Gradients that this backward pass had computed when the all-reduce started.
  int64_t gradients_ready;
};

// ffi.rs asserts the same numbers.
static_assert(sizeof(ReducerOptions) == 32 && offsetof(ReducerOptions, static_graph) == 28);
static_assert(sizeof(ReducerStats) == 48 && offsetof(ReducerStats, overlap_ns) == 40);
static_assert(sizeof(BucketLaunch) == 24 && offsetof(BucketLaunch, gradients_ready) == 16);
} // namespace tchd

extern "C" {
int tchd_reducer_new(
    tchd::ProcessGroup* group,
    at::Tensor* const* parameters,
    size_t count,
    const tchd::ReducerOptions* options,
    tchd::Reducer** out);
int tchd_reducer_prepare_forward(tchd::Reducer* reducer);
int tchd_reducer_prepare_backward(tchd::Reducer* reducer, at::Tensor* const* outputs, size_t count);
// Ends a backward pass that tchd_reducer_prepare_backward prepared.
int tchd_reducer_finish_backward(tchd::Reducer* reducer);
int tchd_reducer_stats(tchd::Reducer* reducer, tchd::ReducerStats* out);
// Writes at most `capacity` launches since the last call, and their number to
// `*count`. Launches that do not fit are dropped.
int tchd_reducer_take_launches(
    tchd::Reducer* reducer,
    tchd::BucketLaunch* out,
    size_t capacity,
    size_t* count);
void tchd_reducer_free(tchd::Reducer* reducer);
}
