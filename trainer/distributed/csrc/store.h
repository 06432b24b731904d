// The key-value store through which the ranks of a group find each other: what
// all kinds of stores do, and those kinds that need no socket.
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
// A store in the memory of this process.
int tchd_store_hash(int64_t timeout_ms, tchd::Store** out);
// A store in a file. The last of `users` stores of the file removes it; 0 keeps it.
int tchd_store_file(const char* path, int users, int64_t timeout_ms, tchd::Store** out);
// A part of `store`: its keys begin with `prefix` and a slash there.
int tchd_store_prefix(const char* prefix, tchd::Store* store, tchd::Store** out);

int tchd_store_set(tchd::Store* store, const char* key, const uint8_t* value, size_t length);
// Waits for the key. Free `*value` with tchd_bytes_free.
int tchd_store_get(tchd::Store* store, const char* key, uint8_t** value, size_t* length);
int tchd_store_add(tchd::Store* store, const char* key, int64_t amount, int64_t* sum);
int tchd_store_wait(tchd::Store* store, const char* const* keys, size_t count, int64_t timeout_ms);
// `*all` is 1 if all keys are set, else 0.
int tchd_store_check(tchd::Store* store, const char* const* keys, size_t count, int* all);
// `*existed` is 1 if the key was set, else 0.
int tchd_store_delete(tchd::Store* store, const char* key, int* existed);
// Free `*value` with tchd_bytes_free.
int tchd_store_compare_set(
    tchd::Store* store,
    const char* key,
    const uint8_t* expected,
    size_t expected_length,
    const uint8_t* desired,
    size_t desired_length,
    uint8_t** value,
    size_t* length);
int tchd_store_num_keys(tchd::Store* store, int64_t* count);
void tchd_bytes_free(uint8_t* bytes);
void tchd_store_free(tchd::Store* store);
}
