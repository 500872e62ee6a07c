// What a GPU is. No CUDA header here.
#pragma once

#include <cstdint>
#include <string>

namespace octet::cuda {

struct DeviceTraits {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  int major = 0, minor = 0;
  int multiprocessors = 0;
  double clock_ghz = 0;
  int64_t l2_bytes = 0;
  int shared_bytes_per_block = 0;  // the most that a kernel may opt in to
  std::string driver, toolkit;     // CUDA versions, "13.0"

  int architecture() const { return 10 * major + minor; }
};

// Throws Error for a GPU that the kernels cannot run on, with the reason.
DeviceTraits read_traits(int index);

}  // namespace octet::cuda
