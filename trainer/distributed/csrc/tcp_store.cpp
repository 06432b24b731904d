#include "tcp_store.h"

#include <chrono>
#include <cstring>
#include <string>

#ifdef _WIN32
#include <winsock2.h>
#else
#include <sys/stat.h>
#include <unistd.h>
#endif

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "shim/error.h"

namespace {

// Distinguishes an open socket from a later one with the same descriptor.
#ifdef _WIN32
// Only one socket can listen at a local address.
struct SocketIdentity {
  sockaddr_storage address{};
  int length = sizeof(sockaddr_storage);
};

bool identify(int fd, SocketIdentity& identity) {
  BOOL listens = FALSE;
  int size = sizeof(listens);
  const auto socket = static_cast<SOCKET>(fd);
  return ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, reinterpret_cast<char*>(&listens), &size) == 0 &&
      listens && ::getsockname(socket, reinterpret_cast<sockaddr*>(&identity.address), &identity.length) == 0;
}

bool operator==(const SocketIdentity& a, const SocketIdentity& b) {
  return a.length == b.length && std::memcmp(&a.address, &b.address, a.length) == 0;
}

void close_socket(int fd) {
  ::closesocket(static_cast<SOCKET>(fd));
}
#else
using SocketIdentity = struct stat;

bool identify(int fd, SocketIdentity& identity) {
  return ::fstat(fd, &identity) == 0;
}

bool operator==(const SocketIdentity& a, const SocketIdentity& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void close_socket(int fd) {
  ::close(fd);
}
#endif

// Closes the listening socket if TCPStore's constructor throws before it owns
// the socket. Nothing reports when it takes ownership, but once the constructor
// has thrown, a socket that it owned is closed. So a descriptor that still
// refers to the same socket has no other owner.
class ListeningSocket {
 public:
  explicit ListeningSocket(int fd) : fd_(fd), valid_(identify(fd, before_)) {}

  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  ~ListeningSocket() {
    SocketIdentity now{};
    if (owned_ && valid_ && identify(fd_, now) && now == before_) {
      close_socket(fd_);
    }
  }

  int fd() const {
    return fd_;
  }

  void release() {
    owned_ = false;
  }

 private:
  int fd_;
  bool owned_ = true;
  SocketIdentity before_{}; // before valid_, which fills it
  bool valid_;
};

tchd::Store* open_store(const char* host, const c10d::TCPStoreOptions& options) {
  return new tchd::Store{c10::make_intrusive<c10d::TCPStore>(std::string(host), options)};
}

} // namespace

extern "C" {

int tchd_store_serve(int listen_fd, const char* host, uint16_t port, int64_t timeout_ms, tchd::Store** out) {
  return tchd::guarded([&] {
    ListeningSocket socket(listen_fd);
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = true;
    options.masterListenFd = socket.fd();
    options.waitWorkers = false;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    *out = open_store(host, options);
    socket.release();
  });
}

int tchd_store_connect(
    const char* host,
    uint16_t port,
    int64_t connect_ms,
    int64_t timeout_ms,
    tchd::Store** out) {
  return tchd::guarded([&] {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = false;
    options.waitWorkers = false;
    options.timeout = std::chrono::milliseconds(connect_ms);
    *out = open_store(host, options);
    (*out)->store->setTimeout(std::chrono::milliseconds(timeout_ms));
  });
}

} // extern "C"
