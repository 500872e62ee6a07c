// Attention by one kernel alone, named by the test's parameter.
#pragma once

#include "cuda/attention/flash.h"
#include "cuda/cuda_support.h"

namespace octet::test {

// Skipped where this GPU cannot run the kernel.
class ForcedAttention : public OnGpu, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    if (GetParam() != cuda::kUnfused) {
      const cuda::FlashKernel& kernel = cuda::find_flash(GetParam());
      if (const auto why = kernel.unsuitable(cuda::read_traits(0)); !why.empty()) {
        GTEST_SKIP() << "skipped, because " << why;
      }
      takes_smaller_heads_ = kernel.hopper() == nullptr;
      head_dim_ = kernel.head_dim, rows_ = kernel.rows, keys_ = kernel.keys;
    }
    backend_ = make_forced(GetParam());
  }

  std::unique_ptr<Backend> backend_;
  // The kernel's, or of what has no tile.
  int64_t head_dim_ = 128, rows_ = 128, keys_ = 64;
  bool takes_smaller_heads_ = true;
};

}  // namespace octet::test
