// Memory that grows to the largest use and then stays, so that a model's steady state allocates
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/per_thread.h"
#include "tensor/tensor.h"

namespace octet::cpu {

inline constexpr int64_t kCacheLine = 64;  // bytes

class Scratch {
 public:
  // At least `bytes`, aligned to kCacheLine. The content is lost when the memory grows.
  std::byte* at_least(int64_t bytes) {
    if (static_cast<int64_t>(memory_.bytes()) < bytes) {
      memory_ = Buffer();  // first, so that the peak is not both
      memory_ = allocate_host(static_cast<size_t>(bytes));
    }
    return memory_.data();
  }

 private:
  Buffer memory_;
};

// The same for each thread that asks.
class ThreadScratch {
 public:
  std::byte* at_least(int64_t bytes) { return scratch_.get().at_least(bytes); }

 private:
  PerThread<Scratch> scratch_;
};

}  // namespace octet::cpu
