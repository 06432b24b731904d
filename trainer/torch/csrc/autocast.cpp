#include "autocast.h"

#include <ATen/autocast_mode.h>

#include "shim/error.h"

namespace tcht {

struct Autocast {
  Autocast(at::DeviceType device_type, at::ScalarType scalar_type, bool enabled)
      : device_type_(device_type), was_enabled_(at::autocast::is_autocast_enabled(device_type)),
        previous_type_(at::autocast::get_autocast_dtype(device_type)) {
    at::autocast::set_autocast_dtype(device_type, scalar_type);
    at::autocast::set_autocast_enabled(device_type, enabled);
    at::autocast::increment_nesting();
  }

  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  ~Autocast() noexcept(false) {
    // The outermost guard drops the cached copies of the weights.
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    at::autocast::set_autocast_enabled(device_type_, was_enabled_);
    at::autocast::set_autocast_dtype(device_type_, previous_type_);
  }

 private:
  at::DeviceType device_type_;
  bool was_enabled_;
  at::ScalarType previous_type_;
};

} // namespace tcht

extern "C" {

int tcht_autocast_enter(int32_t device_type, int32_t scalar_type, int32_t enabled, tcht::Autocast** out) {
  return tcht::guarded([&] {
    *out = new tcht::Autocast(
        static_cast<at::DeviceType>(device_type), static_cast<at::ScalarType>(scalar_type), enabled != 0);
  });
}

void tcht_autocast_exit(tcht::Autocast* autocast) {
  tcht::guarded([&] { delete autocast; });
}

} // extern "C"
