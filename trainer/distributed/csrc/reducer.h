// DistributedDataParallel's engine: averages gradients over the ranks, bucket
// by bucket, while backward still computes the others.
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
  // 0: send as computed, 1: send as float16, 2: record when each bucket starts.
  int32_t hook;
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

// One bucket whose all-reduce was started.
struct BucketLaunch {
  int64_t bucket;
  int64_t elements;
  // Gradients that had arrived in this backward when the bucket started.
  int64_t gradients_ready;
};
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
int tchd_reducer_stats(tchd::Reducer* reducer, tchd::ReducerStats* out);
// Writes at most `capacity` launches since the last call and says how many
// there were; what does not fit is dropped.
int tchd_reducer_take_launches(
    tchd::Reducer* reducer,
    tchd::BucketLaunch* out,
    size_t capacity,
    size_t* count);
void tchd_reducer_free(tchd::Reducer* reducer);
}
