// Automatic mixed precision for one device type, on the calling thread.
#pragma once

#include <cstdint>

namespace tchd {
struct Autocast;
}

extern "C" {
// `device_type` and `scalar_type` are the numbers of c10. `*out` remembers what
// was set before.
int tchd_autocast_enter(int32_t device_type, int32_t scalar_type, int32_t enabled, tchd::Autocast** out);
// Restores it, on the same thread, the last entered first.
void tchd_autocast_exit(tchd::Autocast* autocast);
}
