// The CUDA devices of this machine. No CUDA header here, so that the layers above may include it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octet {

struct CudaDevice {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  int major = 0;     // compute capability
  int minor = 0;
  int multiprocessors = 0;
  uint64_t memory_bytes = 0;
  uint64_t shared_bytes_per_block = 0;  // the most that a kernel may opt in to
};

struct CudaDevices {
  std::vector<CudaDevice> devices;
  std::string driver;   // "13.0", the CUDA version that the driver supports; empty without one
  std::string runtime;  // "13.0", the one this build was made with
  std::string problem;  // why there are no devices, in words; empty when there are some
};

CudaDevices find_cuda_devices();

// Why no kernel runs on a GPU of this compute capability; empty when they do.
std::string why_unsupported(int major, int minor);

}  // namespace octet
