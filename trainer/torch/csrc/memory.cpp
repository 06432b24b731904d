#include "memory.h"

#include <limits>
#include <stdexcept>

#include <c10/core/CachingDeviceAllocator.h>

#include "shim/error.h"

extern "C" {

int tcht_reserved_memory(int32_t device, uint64_t* bytes, uint64_t* peak) {
  return tcht::guarded([&] {
    if (device < 0 || device > std::numeric_limits<c10::DeviceIndex>::max()) {
      throw std::out_of_range("there is no such device");
    }
    auto* allocator = c10::getDeviceAllocator(c10::DeviceType::CUDA);
    const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(device));
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    *bytes = static_cast<uint64_t>(stats.reserved_bytes[all].current);
    *peak = static_cast<uint64_t>(stats.reserved_bytes[all].peak);
  });
}

} // extern "C"
