// The store that one process serves over TCP.
#pragma once

#include <cstdint>

#include "store.h"

extern "C" {
// Serves a store on a socket that is bound to `port` and listens, and connects
// to it as a client. Takes ownership of the descriptor, also if it fails.
int tchd_store_serve(int listen_fd, const char* host, uint16_t port, int64_t timeout_ms, tchd::Store** out);
// Connects to a store that another process serves, within `connect_ms`.
int tchd_store_connect(
    const char* host,
    uint16_t port,
    int64_t connect_ms,
    int64_t timeout_ms,
    tchd::Store** out);
}
