#include "comm_hooks.h"

namespace tchd {

c10::intrusive_ptr<c10::ivalue::Future> RecordingHook::runHook(c10d::GradBucket& bucket) {
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

c10::intrusive_ptr<c10::ivalue::Future> Bf16CompressHook::runHook(c10d::GradBucket& bucket) {
  auto compressed = bucket.getBufferRef().to(at::kBFloat16);
  // Before the sum, as c10d does.
  compressed.div_(state_->getSize());
  std::vector<at::Tensor> tensors{compressed};
  auto reduced = state_->allreduce(tensors)->getFuture();
  auto decompress = [buffer = bucket.getBufferRef()](c10::ivalue::Future& future) {
    buffer.copy_(future.value().toTensorVector()[0]);
    return c10::IValue(std::vector<at::Tensor>{buffer});
  };
  return reduced->then(std::move(decompress), reduced->elementType());
}

} // namespace tchd
