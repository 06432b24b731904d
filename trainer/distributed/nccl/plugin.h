// The NCCL plugin: NCCL for the CUDA tensors of a process group. It is a shared
// library of its own, opened after libtorch_cuda, so that the program itself
// needs neither. The functions report errors as in shim/error.h.
#pragma once

#include <cstdint>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#define TCHN_EXPORT extern "C" __attribute__((visibility("default")))

// The version of this interface. A program opens a plugin of its own version only.
#define TCHN_INTERFACE 1

TCHN_EXPORT int tchn_interface();
TCHN_EXPORT const char* tchn_last_error();
// The versions of libtorch and NCCL whose headers the plugin was built with, and
// of the NCCL in this process. NCCL's are numbers such as 22809 for 2.28.9.
TCHN_EXPORT int tchn_versions(const char** torch, int* nccl_built, int* nccl_loaded);
// From now on, `group` exchanges CUDA tensors over NCCL, and this rank takes those
// on `device` only. Keys in the group's store begin with "nccl". Blocks until all
// ranks have joined. `timeout_ms` limits each collective.
TCHN_EXPORT int tchn_join(c10d::ProcessGroup* group, int device, int64_t timeout_ms);
