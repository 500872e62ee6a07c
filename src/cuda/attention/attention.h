// Attention: one fused kernel where it can (BF16, heads of up to 256 channels, aligned rows), else
// two products with their scores in memory, a piece of them at a time.
#pragma once

#include <functional>
#include <string>

#include "backend/ops.h"
#include "cuda/attention/flash.h"
#include "cuda/device.h"

namespace octet::cuda {

class Attention {
 public:
  // The backend's matmul without a bias: out = a times b transposed.
  using Multiply = std::function<void(const ConstTensorView& a, const ConstTensorView& b,
                                      const TensorView& out)>;

  // `forced`: the only way that may run, the name of a fused kernel or kUnfused; empty: the first
  // that takes the problem.
  Attention(Device& device, Multiply multiply, const std::string& forced = "");

  // The device is current.
  void run(const AttentionArgs& args) const;

 private:
  const FlashKernel* choose(const AttentionArgs& args) const;  // null: unfused
  // F32 stays F32 throughout; of BF16 the weights of the values are rounded to BF16. Its memory,
  // some hundred megabytes for large problems, comes from the device's pool and goes back to it.
  void run_unfused(const AttentionArgs& args) const;

  Device& device_;
  Multiply multiply_;
  const FlashKernel* forced_ = nullptr;
  bool force_unfused_ = false;
};

}  // namespace octet::cuda
