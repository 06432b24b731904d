#include "error.h"

#include <string>

namespace {
thread_local std::string last_error;
}

namespace tchd {

void set_error(const char* text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    // Out of memory while copying the text: an empty one is all there is.
    last_error.clear();
  }
}

} // namespace tchd

extern "C" const char* tchd_last_error(void) {
  return last_error.c_str();
}
