// The F16 tensor-core instruction of Ampere and everything since, with sums in f16.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// acc [16, 8] += a [16, 16] times b [8, 16] transposed, in f16. Operands lie in the lanes as those
// of mma_bf16.cuh; of `acc` a lane holds the same elements, in pairs: those of row g, then of g
// + 8.
__device__ __forceinline__ void mma_16x8x16_f16(uint32_t (&acc)[2], const uint32_t (&a)[4],
                                                uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(acc[0]), "+r"(acc[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace octet::cuda::ptx
