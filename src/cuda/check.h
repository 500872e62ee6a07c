// CUDA's status codes as Errors, with the place and what was attempted.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

namespace octet::cuda {

// `what` completes the sentence "cuda: <what> failed".
void check_cuda(cudaError_t status, std::string_view what,
                std::source_location where = std::source_location::current());

// After a launch: the launch itself, or any error that an earlier kernel left behind.
void check_launch(std::string_view kernel,
                  std::source_location where = std::source_location::current());

}  // namespace octet::cuda
