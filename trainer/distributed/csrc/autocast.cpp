#include "autocast.h"

#include <ATen/autocast_mode.h>

#include "error.h"

namespace tchd {

struct Autocast {
  Autocast(at::DeviceType device_type, at::ScalarType scalar_type, bool enabled)
      : device_type_(device_type),
        was_enabled_(at::autocast::is_autocast_enabled(device_type)),
        previous_type_(at::autocast::get_autocast_dtype(device_type)) {
    at::autocast::set_autocast_dtype(device_type, scalar_type);
    at::autocast::set_autocast_enabled(device_type, enabled);
    at::autocast::increment_nesting();
  }

  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  ~Autocast() noexcept(false) {
    // The outermost one drops the cached copies of the weights.
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

} // namespace tchd

extern "C" {

int tchd_autocast_enter(int32_t device_type, int32_t scalar_type, int32_t enabled, tchd::Autocast** out) {
  return tchd::guarded([&] {
    *out = new tchd::Autocast(
        static_cast<at::DeviceType>(device_type), static_cast<at::ScalarType>(scalar_type), enabled != 0);
  });
}

void tchd_autocast_exit(tchd::Autocast* autocast) {
  tchd::guarded([&] { delete autocast; });
}

} // extern "C"
