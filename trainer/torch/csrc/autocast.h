// Automatic mixed precision for one device type, on the calling thread.
#pragma once

#include <cstdint>

namespace tcht {
struct Autocast;
}

extern "C" {
// `device_type` and `scalar_type` are values of c10's enums. `*out` keeps the
// previous state.
int tcht_autocast_enter(int32_t device_type, int32_t scalar_type, int32_t enabled, tcht::Autocast** out);
// Restores the previous state. Call it on the same thread, in reverse order.
void tcht_autocast_exit(tcht::Autocast* autocast);
}
