// How every function of this C ABI reports failure: it returns 0 on success
// and -1 on error, and leaves the text in tchd_last_error() of the same
// thread. No C++ exception crosses into Rust.
#pragma once

#include <exception>

#include <c10/util/Exception.h>

extern "C" {
// Text of the last error on this thread; valid until the next call fails.
const char* tchd_last_error(void);
}

namespace tchd {

void set_error(const char* text) noexcept;

// Runs `body`, turning whatever it throws into the thread's error text.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const c10::Error& error) {
    set_error(error.what_without_backtrace());
  } catch (const std::exception& error) {
    set_error(error.what());
  } catch (...) {
    set_error("unknown C++ exception");
  }
  return -1;
}

} // namespace tchd
