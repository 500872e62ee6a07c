// cuDNN's attention, if its library is installed: for GPUs whose tensor cores Octet's own kernels
// do not use in full.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/ops.h"
#include "cuda/device.h"

namespace octet::cuda {

class CudnnAttention {
 public:
  explicit CudnnAttention(Device& device);
  ~CudnnAttention();

  // Why the library cannot be used at all; empty when it can.
  static const std::string& library_problem();
  // Why it does not take this problem; empty if it does. The first call for a problem makes its
  // plan, which takes some time. The device is current.
  std::string refusal(const AttentionArgs& args);
  // Only what was not refused.
  void run(const AttentionArgs& args);

 private:
  class Plan;
  Plan& plan_of(const AttentionArgs& args);
  void start();

  Device& device_;
  void* handle_ = nullptr;  // cuDNN's, made when it is needed
  // By problem. Kept until the end: recorded work may run their kernels.
  std::map<std::string, std::unique_ptr<Plan>> plans_;
  Buffer workspace_;
};

}  // namespace octet::cuda
