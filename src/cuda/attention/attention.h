// Attention: the fused kernel where it can (BF16, heads of up to 256 channels, aligned rows), else
// two products with their scores in memory, a piece of them at a time.
#pragma once

#include <functional>

#include "backend/ops.h"
#include "cuda/attention/flash.h"
#include "cuda/device.h"

namespace octet::cuda {

// The backend's matmul without a bias: out = a times b transposed.
using Multiply =
    std::function<void(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out)>;

// The device is current.
void run_attention(const AttentionArgs& args, Device& device, const Multiply& multiply);

// Null when no fused kernel takes it.
const FlashKernel* choose_flash(const AttentionArgs& args, const DeviceTraits& traits);

// What serves all that the fused kernels do not. F32 stays F32 throughout; of BF16 the weights of
// the values are rounded to BF16. Its memory, some hundred megabytes for large problems, comes from
// the device's pool and goes back to it.
void run_unfused_attention(const AttentionArgs& args, Device& device, const Multiply& multiply);

}  // namespace octet::cuda
