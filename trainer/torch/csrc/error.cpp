#include "shim/error.h"

extern "C" const char* tcht_last_error(void) {
  return tcht::last_error().c_str();
}
