#include "streams.h"

#include <map>
#include <memory>
#include <mutex>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "shim/error.h"

namespace tcht {

struct CopyStream {
  c10::Stream stream;
};

struct Event {
  explicit Event(const c10::Stream& stream, c10::EventFlag flag = c10::EventFlag::PYTORCH_DEFAULT)
      : event(stream.device_type(), flag) {
    event.record(stream);
  }

  c10::Event event;
};

} // namespace tcht

namespace {

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// The allocator keeps the free memory of each stream for that stream, and the pool
// gives another one each time. So there is one per device, or memory would grow by
// a batch with each.
c10::Stream copy_stream(c10::Device device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, c10::Stream> streams;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = streams.find(device.index());
  if (found != streams.end()) {
    return found->second;
  }
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  streams.emplace(device.index(), stream);
  return stream;
}

} // namespace

extern "C" {

int tcht_copy_stream_new(int32_t device, tcht::CopyStream** out) {
  return tcht::guarded([&] {
    const c10::Device cuda(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
    *out = new tcht::CopyStream{copy_stream(cuda)};
  });
}

void tcht_copy_stream_free(tcht::CopyStream* stream) {
  tcht::guarded([&] { delete stream; });
}

int tcht_page_locked(int64_t bytes, at::Tensor** out) {
  return tcht::guarded([&] {
    // If CUDA refuses, c10 takes the error from CUDA before it throws, so that no
    // later call reports it.
    *out = new at::Tensor(at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true)));
  });
}

int tcht_in_page_locked(at::Tensor* tensor, at::Tensor** out) {
  // Without a device, for which libtorch warns at each call.
  return tcht::guarded([&] { *out = new at::Tensor(tensor->pin_memory()); });
}

int tcht_copy_stream_copy(
    tcht::CopyStream* stream,
    at::Tensor* tensor,
    at::Tensor** out,
    tcht::Event** done) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    // The memory of the copy belongs to this stream, so the copy need not wait for
    // what the current stream does with memory that it has freed.
    const c10::StreamGuard guard(stream->stream);
    auto copy = std::make_unique<at::Tensor>(
        tensor->to(stream->stream.device(), tensor->scalar_type(), /*non_blocking=*/true, /*copy=*/true));
    *done = new tcht::Event(stream->stream);
    *out = copy.release();
  });
}

int tcht_wait_for_copy(at::Tensor* copy, tcht::Event* done) {
  return tcht::guarded([&] {
    const auto current = current_stream(copy->device());
    done->event.block(current);
    // Without this, the copy stream could write the next batch into this memory
    // while the current stream still reads it.
    copy->record_stream(current);
  });
}

int tcht_copy_to_host(at::Tensor* tensor, at::Tensor** out, tcht::Event** done) {
  return tcht::guarded([&] {
    at::NoGradGuard no_grad;
    // libtorch allocates page-locked memory for a copy that does not block.
    auto copy = std::make_unique<at::Tensor>(
        tensor->to(c10::kCPU, tensor->scalar_type(), /*non_blocking=*/true, /*copy=*/true));
    *done = new tcht::Event(current_stream(tensor->device()));
    *out = copy.release();
  });
}

int tcht_event_is_done(tcht::Event* event, int32_t* done) {
  return tcht::guarded([&] { *done = event->event.query() ? 1 : 0; });
}

int tcht_event_wait(tcht::Event* event) {
  return tcht::guarded([&] { event->event.synchronize(); });
}

int tcht_event_now(int32_t device, tcht::Event** out) {
  return tcht::guarded([&] {
    const c10::Device cuda(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
    *out = new tcht::Event(current_stream(cuda), c10::EventFlag::BACKEND_DEFAULT);
  });
}

int tcht_seconds_between(tcht::Event* begin, tcht::Event* end, double* out) {
  return tcht::guarded([&] {
    end->event.synchronize();
    *out = begin->event.elapsedTime(end->event) / 1000.0;
  });
}

void tcht_event_free(tcht::Event* event) {
  tcht::guarded([&] { delete event; });
}

} // extern "C"
