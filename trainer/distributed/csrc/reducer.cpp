#include "reducer.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "comm_hooks.h"
#include "shim/error.h"
#include "shim/tensors.h"

namespace tchd {
namespace {

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
      : parameters_(std::move(parameters)), record_(std::make_shared<Record>()),
        static_graph_(options.static_graph != 0) {
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
        static_graph_);
    if (static_graph_) {
      reducer_->set_static_graph();
    }
    if (options.hook == 3) {
      reducer_->register_comm_hook(std::make_unique<Bf16CompressHook>(group));
    } else if (options.hook == 1) {
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
    // finish_backward() has logged the first step of a static graph.
    if (!std::exchange(first_logged_, false)) {
      logger_->set_runtime_stats_and_log();
    }
    reducer_->prepare_for_forward();
    // After the first step the order in which gradients are computed is known.
    reducer_->rebuild_buckets();
  }

  void prepare_backward(const std::vector<at::Tensor>& outputs) {
    record_->gradients_ready.store(0);
    reducer_->prepare_for_backward(outputs);
  }

  // The first backward pass of a static graph only counts how often each gradient
  // is computed. Its gradients are exchanged here, where PyTorch does it in a
  // callback of the autograd engine.
  void finish_backward() {
    if (static_graph_ && !std::exchange(first_finished_, true)) {
      reducer_->delay_all_reduce();
      logger_->set_runtime_stats_and_log();
      first_logged_ = true;
      // Ends the first iteration. Until it ends, c10d also counts the gradients of
      // a backward pass that is not synchronized, and the second synchronized one
      // would wait for as many and send nothing.
      reducer_->prepare_for_forward();
    }
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
  bool static_graph_;
  bool first_finished_ = false;
  bool first_logged_ = false;
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

int tchd_reducer_finish_backward(tchd::Reducer* reducer) {
  return tchd::guarded([&] { reducer->finish_backward(); });
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
