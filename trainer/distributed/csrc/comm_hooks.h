// How a bucket of gradients is sent to the other ranks, besides the ways that
// c10d has.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "reducer.h"

namespace tchd {

// What a RecordingHook and the hooks of the gradients write.
struct Record {
  std::atomic<int64_t> gradients_ready{0};
  std::mutex mutex;
  std::vector<BucketLaunch> launches;
};

// All-reduces as the Reducer does without a hook, and records each launch.
class RecordingHook : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  RecordingHook(c10::intrusive_ptr<c10d::ProcessGroup> group, std::shared_ptr<Record> record)
      : CppCommHookInterface(std::move(group)), record_(std::move(record)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;

 private:
  std::shared_ptr<Record> record_;
};

// All-reduces in bfloat16, with half the bytes, as c10d's FP16_COMPRESS does in
// float16.
class Bf16CompressHook : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  explicit Bf16CompressHook(c10::intrusive_ptr<c10d::ProcessGroup> group)
      : CppCommHookInterface(std::move(group)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;
};

} // namespace tchd
