// The backend that runs on an NVIDIA GPU. No CUDA header here.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "tune/planner.h"

namespace octet {

struct CudaOptions {
  int device = 0;
  int threads = 0;            // of Backend::pool(); 0: one per physical core
  void* stream = nullptr;     // a cudaStream_t of the caller; null: one of its own
  uint64_t memory_limit = 0;  // bytes, see Backend::memory_limit(); 0: none
  tune::TuneMode tune = tune::TuneMode::missing;
  // Whoever uses it calls Backend::refine(): kernels that are missing are measured then, and until
  // then nothing waits for that.
  bool refines = false;
  std::string force_kernel;     // the only GEMM kernel that may run; empty: the planner chooses
  std::string force_attention;  // the same for attention, see cuda/attention/flash.h
};

// Throws Error when there is no such GPU or no kernel for it.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options);

}  // namespace octet
