// Attention: one fused kernel if possible (BF16, heads of up to 256 channels, aligned rows), ours
// or cuDNN's; otherwise two products with the scores in memory, a chunk of them at a time.
#pragma once

#include <string>

#include "backend/ops.h"
#include "cuda/attention/cudnn_attention.h"
#include "cuda/attention/flash.h"
#include "cuda/device.h"
#include "cuda/matmul/matmul.h"

namespace octet::cuda {

class Attention {
 public:
  // `forced`: the only path that may run, the name of a fused kernel, kCudnn or kUnfused; empty:
  // the one that takes the problem and is probably the fastest.
  Attention(Device& device, Matmul& matmul, const std::string& forced);

  // The device is current. Returns the name of the kernel or path that ran.
  std::string_view run(const AttentionArgs& args);
  // Why no kernel takes heads of this size in INT8 and gives results of this type, with or without
  // values in INT8; empty if one does.
  std::string why_no_int8(int64_t head_dim, DType results, bool values) const;

 private:
  const FlashKernel* choose(const AttentionArgs& args) const;  // null: unfused
  // Whether cuDNN should run this instead of `kernel`, which may be null.
  bool prefers_cudnn(const AttentionArgs& args, const FlashKernel* kernel);
  // False, with a warning, if it fails and is not forced; then it is not tried again.
  bool run_by_cudnn(const AttentionArgs& args);
  // F32 stays F32 throughout; for BF16 the weights of the values are rounded to BF16. Its memory,
  // some hundred megabytes for large problems, comes from the device's pool and returns to it.
  void run_unfused(const AttentionArgs& args);

  Device& device_;
  Matmul& matmul_;
  FlashLauncher launcher_;
  CudnnAttention cudnn_;
  const FlashKernel* forced_ = nullptr;
  bool force_unfused_ = false, force_cudnn_ = false, cudnn_failed_ = false;
};

}  // namespace octet::cuda
