// The key-value store through which the ranks of a group find each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tchd {
struct Store {
  c10::intrusive_ptr<c10d::Store> store;
};
} // namespace tchd

extern "C" {
// Serves a store on a socket that is bound to `port` and listens, and connects
// to it as a client. Takes ownership of the descriptor, also if it fails.
int tchd_store_serve(int listen_fd, const char* host, uint16_t port, int64_t timeout_ms, tchd::Store** out);
// Connects to a store that another process serves.
int tchd_store_connect(const char* host, uint16_t port, int64_t timeout_ms, tchd::Store** out);
int tchd_store_set(tchd::Store* store, const char* key, const uint8_t* value, size_t length);
// Waits for the key. Free `*value` with tchd_bytes_free.
int tchd_store_get(tchd::Store* store, const char* key, uint8_t** value, size_t* length);
int tchd_store_add(tchd::Store* store, const char* key, int64_t amount, int64_t* sum);
int tchd_store_wait(tchd::Store* store, const char* const* keys, size_t count, int64_t timeout_ms);
void tchd_bytes_free(uint8_t* bytes);
void tchd_store_free(tchd::Store* store);
}
