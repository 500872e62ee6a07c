// The fused attention kernels as the host sees them. No CUDA header here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backend/ops.h"
#include "cuda/attention/flash_tile.h"

struct CUstream_st;

namespace octet::cuda {

struct FlashKernel {
  FlashTile tile;
  const void* code;  // takes FlashParams

  std::string name() const;  // "flash_256_128x64_s4"
  // Why it cannot run this on a device with so much shared memory for a block; empty when it can.
  std::string refusal(const AttentionArgs& args, int shared_bytes_per_block) const;
  // Only what was not refused.
  void launch(const AttentionArgs& args, CUstream_st* stream) const;
};

// Ordered: of those that take a problem, the first is used.
std::span<const FlashKernel> flash_kernels();
// Throws Error with all names when there is none of this one.
const FlashKernel& find_flash(std::string_view name);
// What stands for none of them where a kernel is named.
inline constexpr std::string_view kUnfused = "unfused";

}  // namespace octet::cuda
