#include "reducer.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "shim/error.h"
#include "shim/tensors.h"

namespace tchd {
namespace {

// Shared by the communication hook and the hooks of the gradients.
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

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    {
      std::lock_guard<std::mutex> lock(record_->mutex);
      record_->launches.push_back(
          {static_cast<int64_t>(bucket.getIndex()),
           bucket.getBuffer().numel(),
           record_->gradients_ready.load()});
    }
    std::vector<at::Tensor> buffers{bucket.getBufferRef()};
    buffers[0].div_(state_->getSize());
    return state_->allreduce(buffers)->getFuture();
  }

 private:
  std::shared_ptr<Record> record_;
};

// Assigns parameters to buckets as DistributedDataParallel does.
std::vector<std::vector<size_t>> assign_buckets(
    const std::vector<at::Tensor>& parameters,
    const ReducerOptions& options) {
  const std::vector<size_t> limits{
      static_cast<size_t>(options.first_bucket_bytes), static_cast<size_t>(options.bucket_bytes)};
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters, limits, std::vector<bool>(parameters.size(), false)));
  // The backward pass computes gradients from the last parameter to the first.
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

} // namespace

class Reducer {
 public:
  Reducer(
      const c10::intrusive_ptr<c10d::ProcessGroup>& group,
      std::vector<at::Tensor> parameters,
      const ReducerOptions& options)
      : parameters_(std::move(parameters)), record_(std::make_shared<Record>()) {
    const std::vector<bool> sparse(parameters_.size(), false);
    std::unordered_map<size_t, std::string> names;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      names[i] = std::to_string(i);
    }
    reducer_ = std::make_shared<c10d::Reducer>(
        parameters_,
        assign_buckets(parameters_, options),
        group,
        sparse,
        options.bucket_bytes,
        options.find_unused_parameters != 0,
        options.gradient_as_bucket_view != 0,
        names,
        options.first_bucket_bytes,
        /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false,
        std::vector<int64_t>{});
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
    logger_->set_construction_data_and_log(
        "tch",
        {},
        /*output_device=*/-1,
        /*broadcast_buffers=*/false,
        /*has_sync_bn=*/false,
        /*static_graph=*/false);
    if (options.hook == 1) {
      reducer_->register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
    } else if (options.hook == 2) {
      reducer_->register_comm_hook(std::make_unique<RecordingHook>(group, record_));
      for (const at::Tensor& parameter : parameters_) {
        auto record = record_;
        // Runs before the gradient is accumulated, and so before the Reducer sees it.
        gradient_hooks_.push_back(
            parameter.register_hook([record](const at::Tensor&) { record->gradients_ready.fetch_add(1); }));
      }
    }
  }

  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  ~Reducer() noexcept(false) {
    for (size_t i = 0; i < gradient_hooks_.size(); ++i) {
      parameters_[i].remove_hook(gradient_hooks_[i]);
    }
  }

  void prepare_forward() {
    logger_->set_runtime_stats_and_log();
    reducer_->prepare_for_forward();
    // After the first step the order in which gradients are computed is known.
    reducer_->rebuild_buckets();
  }

  void prepare_backward(const std::vector<at::Tensor>& outputs) {
    record_->gradients_ready.store(0);
    reducer_->prepare_for_backward(outputs);
  }

  ReducerStats stats() {
    logger_->set_runtime_stats_and_log();
    auto numbers = logger_->get_ddp_logging_data().ints_map;
    return {
        static_cast<int64_t>(reducer_->get_grad_buckets().size()),
        numbers["has_rebuilt_buckets"],
        numbers["avg_forward_compute_time"],
        numbers["avg_backward_compute_time"],
        numbers["avg_backward_comm_time"],
        numbers["avg_backward_compute_comm_overlap_time"],
    };
  }

  std::vector<BucketLaunch> take_launches() {
    std::lock_guard<std::mutex> lock(record_->mutex);
    return std::exchange(record_->launches, {});
  }

 private:
  std::vector<at::Tensor> parameters_;
  std::shared_ptr<Record> record_;
  std::vector<unsigned> gradient_hooks_;
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
};

} // namespace tchd

extern "C" {

int tchd_reducer_new(
    tchd::ProcessGroup* group,
    at::Tensor* const* parameters,
    size_t count,
    const tchd::ReducerOptions* options,
    tchd::Reducer** out) {
  return tchd::guarded(
      [&] { *out = new tchd::Reducer(group->group, tchd::to_vector(parameters, count), *options); });
}

int tchd_reducer_prepare_forward(tchd::Reducer* reducer) {
  return tchd::guarded([&] { reducer->prepare_forward(); });
}

int tchd_reducer_prepare_backward(tchd::Reducer* reducer, at::Tensor* const* outputs, size_t count) {
  return tchd::guarded([&] { reducer->prepare_backward(tchd::to_vector(outputs, count)); });
}

int tchd_reducer_stats(tchd::Reducer* reducer, tchd::ReducerStats* out) {
  return tchd::guarded([&] { *out = reducer->stats(); });
}

int tchd_reducer_take_launches(
    tchd::Reducer* reducer,
    tchd::BucketLaunch* out,
    size_t capacity,
    size_t* count) {
  return tchd::guarded([&] {
    const auto launches = reducer->take_launches();
    *count = std::min(capacity, launches.size());
    std::copy_n(launches.begin(), *count, out);
  });
}

void tchd_reducer_free(tchd::Reducer* reducer) {
  tchd::guarded([&] { delete reducer; });
}

} // extern "C"
