// The BF16 tensor-core instruction of Ampere and everything since.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// acc [16, 8] += a [16, 16] times b [8, 16] transposed, in f32. Lane l, g = l / 4, t = l % 4,
// holds of `acc` the columns 2t and 2t + 1 of rows g (0, 1) and g + 8 (2, 3); of `a` the columns
// 2t and 2t + 1 of rows g (0) and g + 8 (1), then 2t + 8 and 2t + 9 of both (2, 3); of `b` the
// columns 2t, 2t + 1 (b0) and 2t + 8, 2t + 9 (b1) of row g.
__device__ __forceinline__ void mma_16x8x16(float (&acc)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace octet::cuda::ptx
