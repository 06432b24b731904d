#include "shim/error.h"

extern "C" const char* tchd_last_error(void) {
  return tchd::last_error().c_str();
}
