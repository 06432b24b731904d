#include "store.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "shim/error.h"

namespace {

tchd::Store* with_timeout(c10::intrusive_ptr<c10d::Store> store, int64_t timeout_ms) {
  store->setTimeout(std::chrono::milliseconds(timeout_ms));
  return new tchd::Store{std::move(store)};
}

std::vector<uint8_t> to_bytes(const uint8_t* bytes, size_t length) {
  return length == 0 ? std::vector<uint8_t>() : std::vector<uint8_t>(bytes, bytes + length);
}

void give(const std::vector<uint8_t>& bytes, uint8_t** value, size_t* length) {
  // malloc(0) may return null, which is not an error.
  auto* copy = static_cast<uint8_t*>(std::malloc(bytes.empty() ? 1 : bytes.size()));
  TORCH_CHECK(copy != nullptr, "out of memory for a store value of ", bytes.size(), " bytes");
  if (!bytes.empty()) {
    std::memcpy(copy, bytes.data(), bytes.size());
  }
  *value = copy;
  *length = bytes.size();
}

} // namespace

extern "C" {

int tchd_store_hash(int64_t timeout_ms, tchd::Store** out) {
  return tchd::guarded([&] { *out = with_timeout(c10::make_intrusive<c10d::HashStore>(), timeout_ms); });
}

int tchd_store_file(const char* path, int users, int64_t timeout_ms, tchd::Store** out) {
  return tchd::guarded([&] {
    *out = with_timeout(c10::make_intrusive<c10d::FileStore>(std::string(path), users), timeout_ms);
  });
}

int tchd_store_prefix(const char* prefix, tchd::Store* store, tchd::Store** out) {
  return tchd::guarded([&] {
    *out = new tchd::Store{c10::make_intrusive<c10d::PrefixStore>(std::string(prefix), store->store)};
  });
}

int tchd_store_set(tchd::Store* store, const char* key, const uint8_t* value, size_t length) {
  return tchd::guarded([&] { store->store->set(key, to_bytes(value, length)); });
}

int tchd_store_get(tchd::Store* store, const char* key, uint8_t** value, size_t* length) {
  return tchd::guarded([&] { give(store->store->get(std::string(key)), value, length); });
}

int tchd_store_add(tchd::Store* store, const char* key, int64_t amount, int64_t* sum) {
  return tchd::guarded([&] { *sum = store->store->add(key, amount); });
}

int tchd_store_wait(tchd::Store* store, const char* const* keys, size_t count, int64_t timeout_ms) {
  return tchd::guarded([&] {
    store->store->wait(std::vector<std::string>(keys, keys + count), std::chrono::milliseconds(timeout_ms));
  });
}

int tchd_store_check(tchd::Store* store, const char* const* keys, size_t count, int* all) {
  return tchd::guarded(
      [&] { *all = store->store->check(std::vector<std::string>(keys, keys + count)) ? 1 : 0; });
}

int tchd_store_delete(tchd::Store* store, const char* key, int* existed) {
  return tchd::guarded([&] { *existed = store->store->deleteKey(key) ? 1 : 0; });
}

int tchd_store_compare_set(
    tchd::Store* store,
    const char* key,
    const uint8_t* expected,
    size_t expected_length,
    const uint8_t* desired,
    size_t desired_length,
    uint8_t** value,
    size_t* length) {
  return tchd::guarded([&] {
    give(
        store->store->compareSet(key, to_bytes(expected, expected_length), to_bytes(desired, desired_length)),
        value,
        length);
  });
}

int tchd_store_num_keys(tchd::Store* store, int64_t* count) {
  return tchd::guarded([&] { *count = store->store->getNumKeys(); });
}

void tchd_bytes_free(uint8_t* bytes) {
  std::free(bytes);
}

void tchd_store_free(tchd::Store* store) {
  tchd::guarded([&] { delete store; });
}

} // extern "C"
