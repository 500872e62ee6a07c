// The devices of this machine.
//
//   for (const octet::DeviceInfo& device : octet::list_devices())
//     std::cout << device.name << ": " << device.description << "\n";
#pragma once

#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct DeviceInfo {
  std::string name = {};         // the value of `device`: "cpu", "ref", "cuda:0"
  std::string description = {};  // "Intel(R) Xeon(R) Processor, 2 cores"
  std::string int8_kernel = {};  // the GEMM kernel that would run; empty when there is none
  std::vector<std::string> features = {};  // instruction sets in use, or the GPU's capabilities
  std::string unavailable = {};            // why it cannot run the INT8 path; empty when it can
};

// All devices of this machine. A build without CUDA, or a machine without a usable GPU, has one
// "cuda" entry whose `unavailable` says so.
OCTET_API std::vector<DeviceInfo> list_devices();

// The largest allowed `threads` of a request: four per hardware thread, or 64.
OCTET_API int max_threads();

}  // namespace octet
