// The INT8 tensor-core instruction of Ampere and everything since.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// acc [16, 8] += a [16, 32] times b [8, 32] transposed, exact in int32. Lane l, g = l / 4,
// t = l % 4, holds of `acc` the columns 2t and 2t + 1 of rows g (0, 1) and g + 8 (2, 3).
__device__ __forceinline__ void mma_16x8x32(int32_t (&acc)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace octet::cuda::ptx
