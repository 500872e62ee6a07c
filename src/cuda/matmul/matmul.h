// The unquantized product on the GPU: by cuBLASLt where it can, by a plain kernel elsewhere.
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

  // Opened when first asked for; null when it is not installed.
  CublasLt* library();

 private:
  Device& device_;
  std::optional<CublasLt> library_;
  bool told_of_missing_library_ = false;
};

}  // namespace octet::cuda
