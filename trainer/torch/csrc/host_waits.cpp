#include "host_waits.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include <c10/core/Layout.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/core/impl/PyInterpreter.h>

#include "shim/error.h"

namespace {

std::atomic<uint64_t> count{0};

[[noreturn]] void unexpected() {
  throw std::logic_error("libtorch asked the counter of host waits for something else");
}

// libtorch reports what it does on a GPU through the virtual functions of a
// Python interpreter, whether or not there is Python. This one counts the three
// kinds of waits. libtorch_cuda calls only the functions whose names begin with
// trace_gpu; those that return a value belong to tensors of Python subclasses,
// of which this process has none.
class Counter final : public c10::impl::PyInterpreterVTable {
 public:
  std::string name() const override {
    return "host waits";
  }
  void incref(PyObject*) const override {}
  void decref(PyObject*) const override {}
  bool try_incref(const c10::impl::PyObjectSlot&) const override {
    return false;
  }
  size_t refcnt(PyObject*) const override {
    return 0;
  }
  c10::intrusive_ptr<c10::TensorImpl> detach(const c10::TensorImpl*) const override {
    unexpected();
  }
  void dispatch(const c10::OperatorHandle&, torch::jit::Stack*) const override {
    unexpected();
  }
  void reportErrorCallback(PyObject*, c10::DispatchKey) const override {}
  void python_op_registration_trampoline(
      const c10::OperatorHandle&,
      c10::DispatchKey,
      c10::DispatchKeySet,
      torch::jit::Stack*,
      bool,
      bool) const override {
    unexpected();
  }
  void throw_abstract_impl_not_imported_error(std::string, const char*, const char*) const override {
    unexpected();
  }
  void python_dispatcher(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*) const override {
    unexpected();
  }
  bool is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override {
    unexpected();
  }
  c10::SymBool sym_is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override {
    unexpected();
  }
  bool is_strides_like(const c10::TensorImpl*, at::MemoryFormat) const override {
    unexpected();
  }
  bool is_non_overlapping_and_dense(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::Device device(const c10::TensorImpl*) const override {
    unexpected();
  }
  int64_t dim(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::IntArrayRef strides(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::IntArrayRef sizes(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::SymIntArrayRef sym_sizes(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::Layout layout(const c10::TensorImpl*) const override {
    unexpected();
  }
  int64_t numel(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::SymInt sym_numel(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::SymIntArrayRef sym_strides(const c10::TensorImpl*) const override {
    unexpected();
  }
  c10::SymInt sym_storage_offset(const c10::TensorImpl*) const override {
    unexpected();
  }
  void trace_gpu_event_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_deletion(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_record(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_event_wait(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_memory_allocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_memory_deallocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_stream_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_device_synchronization(c10::DeviceType) const override {
    add();
  }
  void trace_gpu_stream_synchronization(c10::DeviceType, uintptr_t) const override {
    add();
  }
  void trace_gpu_event_synchronization(c10::DeviceType, uintptr_t) const override {
    add();
  }
  void reset_backward_hooks(const c10::TensorImpl*) const override {
    unexpected();
  }

 private:
  static void add() {
    count.fetch_add(1, std::memory_order_relaxed);
  }
};

} // namespace

extern "C" {

int tcht_host_waits(uint64_t* waits) {
  return tcht::guarded([&] {
    // Both live until the process ends, because libtorch keeps the pointer.
    static const Counter counter;
    static const c10::impl::PyInterpreter observer(&counter);
    c10::impl::GPUTrace::set_trace(&observer);
    if (c10::impl::GPUTrace::get_trace() != &observer) {
      throw std::runtime_error("something else in this process already observes the GPU");
    }
    *waits = count.load(std::memory_order_relaxed);
  });
}

} // extern "C"
