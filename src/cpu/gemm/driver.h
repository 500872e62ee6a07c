// The int8 GEMM around a microkernel: packs the activations, cuts the output into tasks for the
// threads, blocks for the caches, applies the epilogue.
#pragma once

#include <vector>

#include "backend/gemm.h"
#include "base/thread_pool.h"
#include "cpu/gemm/int8_microkernel.h"
#include "cpu/scratch.h"

namespace octet::cpu {

// Memory that gemm calls reuse.
struct GemmWorkspace {
  Scratch activations;                // packed panels of a
  std::vector<Scratch> accumulators;  // of one task, one per thread
};

void gemm(ThreadPool& pool, const Int8MicroKernel& kernel, const GemmProblem& problem,
          const GemmArgs& args, GemmWorkspace& workspace);

}  // namespace octet::cpu
