// A device of this machine: plain data.
#pragma once

#include <string>
#include <vector>

namespace octet {

struct DeviceInfo {
  std::string name;                   // the value of `device`: "cpu", "ref", "cuda:0"
  std::string description;            // "Intel(R) Xeon(R) Processor, 2 cores"
  std::string int8_kernel;            // the GEMM kernel that would run; empty when there is none
  std::vector<std::string> features;  // instruction sets in use, or the GPU's capabilities
  std::string unavailable;            // why it cannot run the INT8 path; empty when it can
};

}  // namespace octet
