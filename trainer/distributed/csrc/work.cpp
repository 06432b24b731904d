#include "work.h"

#include <chrono>

#include "shim/error.h"

extern "C" {

int tchd_work_wait(tchd::Work* work, int64_t timeout_ms) {
  return tchd::guarded([&] {
    const auto type = work->work->retrieveOpType();
    const bool message =
        type == c10d::OpType::SEND || type == c10d::OpType::RECV || type == c10d::OpType::RECVANYSOURCE;
    const bool ended = message ? work->work->wait(std::chrono::milliseconds(timeout_ms)) : work->work->wait();
    TORCH_CHECK(ended, "the work was aborted");
  });
}

int tchd_work_is_completed(tchd::Work* work, int* done) {
  return tchd::guarded([&] { *done = work->work->isCompleted() ? 1 : 0; });
}

int tchd_work_source(tchd::Work* work, int* rank) {
  return tchd::guarded([&] { *rank = work->work->sourceRank(); });
}

void tchd_work_free(tchd::Work* work) {
  tchd::guarded([&] { delete work; });
}

} // extern "C"
