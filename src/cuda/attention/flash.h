// The fused attention kernels as the host sees them.
#pragma once

#include <span>
#include <string>

#include "backend/ops.h"
#include "cuda/attention/flash_tile.h"
#include "cuda/device.h"

namespace octet::cuda {

struct FlashKernel {
  FlashTile tile;
  const void* code;  // takes FlashParams

  std::string name() const;  // "flash_256_128x64_s4"
  // Why it cannot run this on a device with so much shared memory for a block; empty when it can.
  std::string refusal(const AttentionArgs& args, int shared_bytes_per_block) const;
  // Only what was not refused.
  void launch(const AttentionArgs& args, cudaStream_t stream) const;
};

// Ordered: of those that take a problem, the first is used.
std::span<const FlashKernel> flash_kernels();

}  // namespace octet::cuda
