// The INT8 multiplication of Hopper; see wgmma.cuh.
#pragma once

#include "cuda/ptx/register_lists.cuh"
#include "cuda/ptx/wgmma.cuh"

namespace octet::cuda::ptx {

// n columns; `names` of n / 2 registers, then the numbers of the three operands that follow.
#define OCTET_WGMMA_S8(n, names, a_name, b_name, p_name, ...)                                    \
  asm volatile("{\n" OCTET_WGMMA_DESCRIPTOR("da", a_name) OCTET_WGMMA_DESCRIPTOR(                \
                   "db", b_name) " .reg .pred adds;\n setp.ne.b32 adds, " p_name                 \
                                 ", 0;\n"                                                        \
                                 " wgmma.mma_async.sync.aligned.m64n" #n "k32.s32.s8.s8 {" names \
                                 "}, da, db, adds;\n}"                                           \
               : __VA_ARGS__                                                                     \
               : "r"(a), "r"(b), "r"(static_cast<int>(adds)))

// acc [64, 8 kBlocks] (+)= a [64, 32] times b [8 kBlocks, 32] transposed, exact in int32. Warp w
// of the four holds rows 16 w to 16 w + 15; within them lane l, g = l / 4, t = l % 4, holds of
// acc[j] the columns 8 j + 2 t and 8 j + 2 t + 1 of rows g (0, 1) and g + 8 (2, 3). Nothing may
// touch the accumulators before wgmma_wait.
template <int kBlocks>
__device__ __forceinline__ void wgmma_64xNx32(int32_t (&acc)[kBlocks][4], uint32_t a, uint32_t b,
                                              bool adds) {
  static_assert(kBlocks == 8 || kBlocks == 10 || kBlocks == 12 || kBlocks == 14 || kBlocks == 16 ||
                kBlocks == 22 || kBlocks == 24 || kBlocks == 32);
  if constexpr (kBlocks == 8) {
    OCTET_WGMMA_S8(64, OCTET_NAMES_32, "%32", "%33", "%34", OCTET_ACC_32("+r", 0));
  } else if constexpr (kBlocks == 10) {
    OCTET_WGMMA_S8(80, OCTET_NAMES_40, "%40", "%41", "%42", OCTET_ACC_40("+r", 0));
  } else if constexpr (kBlocks == 12) {
    OCTET_WGMMA_S8(96, OCTET_NAMES_48, "%48", "%49", "%50", OCTET_ACC_48("+r", 0));
  } else if constexpr (kBlocks == 14) {
    OCTET_WGMMA_S8(112, OCTET_NAMES_56, "%56", "%57", "%58", OCTET_ACC_56("+r", 0));
  } else if constexpr (kBlocks == 16) {
    OCTET_WGMMA_S8(128, OCTET_NAMES_64, "%64", "%65", "%66", OCTET_ACC_64("+r", 0));
  } else if constexpr (kBlocks == 22) {
    OCTET_WGMMA_S8(176, OCTET_NAMES_88, "%88", "%89", "%90", OCTET_ACC_88("+r", 0));
  } else if constexpr (kBlocks == 24) {
    OCTET_WGMMA_S8(192, OCTET_NAMES_96, "%96", "%97", "%98", OCTET_ACC_96("+r", 0));
  } else {
    OCTET_WGMMA_S8(256, OCTET_NAMES_128, "%128", "%129", "%130", OCTET_ACC_128("+r", 0));
  }
}

#undef OCTET_WGMMA_S8

// acc [64, 64] (+)= a [64, 32] times b [64, 32] transposed, of unsigned bytes. `a` is in registers
// in the layout of mma_16x8x32, each warp with its 16 rows; it must not change before wgmma_wait
// either.
__device__ __forceinline__ void wgmma_64xNx32_u8(int32_t (&acc)[8][4], const uint32_t (&a)[4],
                                                 uint32_t b, bool adds) {
  asm volatile("{\n" OCTET_WGMMA_DESCRIPTOR("db", "%36")
               " .reg .pred adds;\n setp.ne.b32 adds, %37, 0;\n"
               " wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8 {" OCTET_NAMES_32
               "}, {%32, %33, %34, %35}, db, adds;\n}"
               : OCTET_ACC_32("+r", 0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(static_cast<int>(adds)));
}

}  // namespace octet::cuda::ptx
