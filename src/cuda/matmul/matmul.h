// The unquantized product on the GPU: by cuBLASLt if possible, otherwise by a plain kernel.
#pragma once

#include <optional>

#include "cuda/device.h"
#include "cuda/matmul/cublaslt.h"
#include "tensor/tensor.h"

namespace octet::cuda {

class Matmul {
 public:
  explicit Matmul(Device& device) : device_(device) {}

  // Backend::matmul(); the device is active.
  void run(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
           const ConstTensorView& bias);

  // Opened on first use; null if it is not installed.
  CublasLt* library();

 private:
  Device& device_;
  std::optional<CublasLt> library_;
  bool told_of_missing_library_ = false;
};

}  // namespace octet::cuda
