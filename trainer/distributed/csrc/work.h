// A collective that may still be running.
#pragma once

#include <cstdint>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace tchd {
struct Work {
  c10::intrusive_ptr<c10d::Work> work;
};
} // namespace tchd

extern "C" {
// Waits for the end of the work, for at most `timeout_ms` if it is a message
// between two ranks; a collective has a timeout of its own. Over NCCL it returns
// when a collective is queued, and when a message has ended.
int tchd_work_wait(tchd::Work* work, int64_t timeout_ms);
// `*done` is 1 if the work has ended, with or without error.
int tchd_work_is_completed(tchd::Work* work, int* done);
// The rank from which a message came.
int tchd_work_source(tchd::Work* work, int* rank);
void tchd_work_free(tchd::Work* work);
}
