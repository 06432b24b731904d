// How the functions of a shim report failure: they return 0 on success and -1
// on error. The error text stays in last_error() of the calling thread until
// the next call on that thread fails. No C++ exception crosses into Rust.
#pragma once

#include <exception>
#include <string>

#include <c10/util/Exception.h>

#ifndef SHIM_NAMESPACE
#error "define SHIM_NAMESPACE as the namespace of this shim"
#endif

// One namespace per shim: two shims in one program must not share their code
// or their error text, since they may come from different versions.
namespace SHIM_NAMESPACE {

inline std::string& last_error() noexcept {
  thread_local std::string text;
  return text;
}

inline void set_error(const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    // Out of memory while copying the text: report an empty one.
    last_error().clear();
  }
}

// Runs `body` and turns any exception into the thread's error text.
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

} // namespace SHIM_NAMESPACE
