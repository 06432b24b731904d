#include "memory.h"

#include <limits>
#include <stdexcept>

#include <c10/core/CachingDeviceAllocator.h>

#include "shim/error.h"

namespace {

c10::DeviceIndex index_of(int32_t device) {
  if (device < 0 || device > std::numeric_limits<c10::DeviceIndex>::max()) {
    throw std::out_of_range("there is no such device");
  }
  return static_cast<c10::DeviceIndex>(device);
}

} // namespace

extern "C" {

int tcht_reserved_memory(int32_t device, uint64_t* bytes, uint64_t* peak) {
  return tcht::guarded([&] {
    const auto index = index_of(device);
    auto* allocator = c10::getDeviceAllocator(c10::DeviceType::CUDA);
    const auto stats = allocator->getDeviceStats(index);
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    *bytes = static_cast<uint64_t>(stats.reserved_bytes[all].current);
    *peak = static_cast<uint64_t>(stats.reserved_bytes[all].peak);
  });
}

int tcht_release_memory(int32_t device, uint64_t* free) {
  return tcht::guarded([&] {
    const auto index = index_of(device);
    auto* allocator = c10::getDeviceAllocator(c10::DeviceType::CUDA);
    allocator->emptyCache();
    allocator->resetPeakStats(index);
    *free = static_cast<uint64_t>(allocator->getMemoryInfo(index).first);
  });
}

} // extern "C"
