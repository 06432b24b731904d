// Copies between CPU and GPU that the host does not wait for: a stream of their
// own, and events. They go through c10's virtual interface, which libtorch_cuda
// fills in when it is loaded.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tcht {
struct CopyStream;
struct Event;
} // namespace tcht

extern "C" {
// The stream of CUDA device `device` for copies, one for the whole process.
int tcht_copy_stream_new(int32_t device, tcht::CopyStream** out);
void tcht_copy_stream_free(tcht::CopyStream* stream);
// Allocates page-locked memory, as a tensor of bytes whose values are undefined.
int tcht_page_locked(int64_t bytes, at::Tensor** out);
// Returns a CPU tensor in page-locked memory: a copy, unless it is there already.
int tcht_in_page_locked(at::Tensor* tensor, at::Tensor** out);
// Queues a copy of a CPU tensor on the stream. `*out` is a new handle, which must
// not be used before the current stream waits for `*done`.
int tcht_copy_stream_copy(tcht::CopyStream* stream, at::Tensor* tensor, at::Tensor** out, tcht::Event** done);
// Makes the current stream of the tensor's device wait for `done`, and tells the
// allocator that it uses the tensor.
int tcht_wait_for_copy(at::Tensor* copy, tcht::Event* done);
// Queues a copy of a CUDA tensor to page-locked memory on the current stream.
int tcht_copy_to_host(at::Tensor* tensor, at::Tensor** out, tcht::Event** done);
int tcht_event_is_done(tcht::Event* event, int32_t* done);
// Makes the host wait.
int tcht_event_wait(tcht::Event* event);
// The moment at which the current stream of CUDA device `device` has done what it
// was given before, with its time.
int tcht_event_now(int32_t device, tcht::Event** out);
// The time between two such moments. Makes the host wait for `end`.
int tcht_seconds_between(tcht::Event* begin, tcht::Event* end, double* out);
void tcht_event_free(tcht::Event* event);
}
