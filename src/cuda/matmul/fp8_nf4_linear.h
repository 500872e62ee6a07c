// Linears with FP8 and NF4 weights, as other stacks run them, for comparisons only.
#pragma once

#include <memory>
#include <vector>

#include "backend/gemm_tuning.h"
#include "cuda/device.h"
#include "cuda/matmul/matmul.h"

namespace octet::cuda {

// GemmTuning::linear_peers(); the device is active. They share the device and `matmul`, which
// outlive them.
std::vector<LinearPeer> make_linear_peers(Device& device, Matmul& matmul,
                                          const ConstTensorView& weight, int64_t rows);

}  // namespace octet::cuda
