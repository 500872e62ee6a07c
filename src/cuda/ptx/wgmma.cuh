// The tensor-core instructions of Hopper (sm_90a), what all of them share: a warpgroup, four warps,
// multiplies operands that lie in shared memory, asynchronously.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Where an operand is: rows of 128 bytes, groups of eight rows 1024 bytes apart, swizzled as TMA
// leaves them (chunk ^ row % 8). `address` may point inside the first 128 bytes, at multiples of
// 32: that is how a step of k is chosen. Groups begin at multiples of 1024.
//
// This is the low half of the descriptor, in units of 16 bytes, to which steps are added in 32
// bits; the instruction adds the high half, the same for all. (With sums in 64 bits the
// compiler spent more instructions on descriptors than attention does on its softmax.)
__device__ __forceinline__ uint32_t wgmma_operand(uint32_t address) {
  constexpr uint32_t kUnused = 1u << 16;  // the other stride, which swizzling fixes
  return kUnused | (address & 0x3ffff) >> 4;
}

// The same for a second operand whose rows are steps of k: the 128 contiguous bytes of a row are
// columns of the product. The next 128 bytes of columns are `column_stride` bytes further on. A
// step of k is 16 rows, 2048 bytes.
__device__ __forceinline__ uint32_t wgmma_operand_of_columns(uint32_t address,
                                                             uint32_t column_stride) {
  return (column_stride >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// The high half: swizzled by 128 bytes, groups 1024 bytes apart. In an instruction's text, makes
// the descriptor `to` of the operand with this name.
#define OCTET_WGMMA_DESCRIPTOR(to, low) \
  " .reg .b64 " to ";\n mov.b64 " to ", {" low ", 0x40000040};\n"

// Before the first multiplication that touches registers which other instructions have written.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Closes the group of all multiplications so far.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most kPending groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Reads and writes of these registers stay on their side of this line: the compiler does not know
// that wgmma_wait changes them.
template <int kBlocks>
__device__ __forceinline__ void wgmma_pin(float (&acc)[kBlocks][4]) {
#pragma unroll
  for (auto& block : acc) {
    asm volatile("" : "+f"(block[0]), "+f"(block[1]), "+f"(block[2]), "+f"(block[3])::"memory");
  }
}
template <int kBlocks>
__device__ __forceinline__ void wgmma_pin(int32_t (&acc)[kBlocks][4]) {
#pragma unroll
  for (auto& block : acc) {
    asm volatile("" : "+r"(block[0]), "+r"(block[1]), "+r"(block[2]), "+r"(block[3])::"memory");
  }
}

}  // namespace octet::cuda::ptx
