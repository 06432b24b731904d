#pragma once

#include <chrono>

namespace gloo {
// Created only inside libtorch_cpu.
class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};
} // namespace gloo
