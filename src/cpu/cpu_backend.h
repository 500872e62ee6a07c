// The CPU backend: packed weights, cache blocking, threads, and the best instruction set present.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace octet {

struct CpuOptions {
  int threads = 0;           // 0: one per physical core
  std::string force_kernel;  // name of the only int8 microkernel that may run, or empty
  std::string force_matmul;  // name of the only float kernel for the types that it takes, or empty
};

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

}  // namespace octet
