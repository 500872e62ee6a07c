// What the tuner needs to measure one problem on the GPU: operands of random numbers, in more sets
// than fit in the L2, like the layers of a model.
#pragma once

#include "backend/gemm_tuning.h"
#include "cuda/device.h"
#include "cuda/gemm/launcher.h"
#include "cuda/matmul/cublaslt.h"
#include "tune/planner.h"

namespace octet::cuda {

// `library` may be null: then the unquantized product is not among the references.
tune::Trial begin_trial(const std::shared_ptr<Device>& device, GemmLauncher& launcher,
                        CublasLt* library, const GemmProblem& problem);

// The same for a moment between other work: kernels alone, run by run, in at most so many bytes.
// What it took stays with the device's pool. Throws OutOfMemory where the bytes do not suffice.
tune::Trial begin_short_trial(const std::shared_ptr<Device>& device, const GemmProblem& problem,
                              uint64_t most_bytes);

}  // namespace octet::cuda
