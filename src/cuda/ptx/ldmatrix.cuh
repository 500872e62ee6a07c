// The loads that feed mma.sync: 8 x 16-byte matrices from shared memory, one instruction per
// function (sm_75 and newer).
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Four 8 x 16-byte matrices, whose rows lie at the addresses of lanes 0-7, 8-15, 16-23, 24-31:
// lane l gets bytes 4 (l % 4) to 4 (l % 4) + 3 of row l / 4 of each.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&to)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}

// The same for matrices of 16-bit elements, each transposed: lane l gets elements l / 4 of the rows
// 2 (l % 4) and 2 (l % 4) + 1.
__device__ __forceinline__ void ldmatrix_x4_transposed(uint32_t (&to)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}

}  // namespace octet::cuda::ptx
