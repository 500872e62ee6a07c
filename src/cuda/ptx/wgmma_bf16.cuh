// The BF16 multiplications of Hopper; see wgmma.cuh. Accumulators have the layout of wgmma_s8.cuh.
#pragma once

#include "cuda/ptx/register_lists.cuh"
#include "cuda/ptx/wgmma.cuh"

namespace octet::cuda::ptx {

// The last two numbers: neither operand is transposed.
#define OCTET_WGMMA_BF16(n, names, a_name, b_name, p_name, ...)                                \
  asm volatile("{\n" OCTET_WGMMA_DESCRIPTOR("da", a_name) OCTET_WGMMA_DESCRIPTOR(              \
                   "db", b_name) " .reg .pred adds;\n setp.ne.b32 adds, " p_name               \
                                 ", 0;\n"                                                      \
                                 " wgmma.mma_async.sync.aligned.m64n" #n                       \
                                 "k16.f32.bf16.bf16 {" names "}, da, db, adds, 1, 1, 0, 0;\n}" \
               : __VA_ARGS__                                                                   \
               : "r"(a), "r"(b), "r"(static_cast<int>(adds)))

// acc [64, 8 kBlocks] (+)= a [64, 16] times b [8 kBlocks, 16] transposed, in f32; both operands in
// shared memory.
template <int kBlocks>
__device__ __forceinline__ void wgmma_64xNx16(float (&acc)[kBlocks][4], uint32_t a, uint32_t b,
                                              bool adds) {
  static_assert(kBlocks == 8 || kBlocks == 10 || kBlocks == 12 || kBlocks == 16 || kBlocks == 22);
  if constexpr (kBlocks == 8) {
    OCTET_WGMMA_BF16(64, OCTET_NAMES_32, "%32", "%33", "%34", OCTET_ACC_32("+f", 0));
  } else if constexpr (kBlocks == 10) {
    OCTET_WGMMA_BF16(80, OCTET_NAMES_40, "%40", "%41", "%42", OCTET_ACC_40("+f", 0));
  } else if constexpr (kBlocks == 12) {
    OCTET_WGMMA_BF16(96, OCTET_NAMES_48, "%48", "%49", "%50", OCTET_ACC_48("+f", 0));
  } else if constexpr (kBlocks == 16) {
    OCTET_WGMMA_BF16(128, OCTET_NAMES_64, "%64", "%65", "%66", OCTET_ACC_64("+f", 0));
  } else {
    OCTET_WGMMA_BF16(176, OCTET_NAMES_88, "%88", "%89", "%90", OCTET_ACC_88("+f", 0));
  }
}

// The first operand in registers, the second one's rows are steps of k (wgmma_operand_of_columns).
#define OCTET_WGMMA_BF16_RS(n, names, a0, a1, a2, a3, b_name, ...) \
  asm volatile("{\n" OCTET_WGMMA_DESCRIPTOR("db", b_name)                             \
               " .reg .pred adds;\n setp.ne.b32 adds, 1, 0;\n"                        \
               " wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" names     \
               "}, {" a0 ", " a1 ", " a2 ", " a3 "}, db, adds, 1, 1, 1;\n}"           \
               : __VA_ARGS__                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b))

// acc [64, 8 kBlocks] += a [64, 16] times b [16, 8 kBlocks]. `a` has the layout of mma_16x8x16,
// each warp with its 16 rows; it must not change before wgmma_wait either.
template <int kBlocks>
__device__ __forceinline__ void wgmma_64xNx16_add(float (&acc)[kBlocks][4], const uint32_t (&a)[4],
                                                  uint32_t b) {
  static_assert(kBlocks == 8 || kBlocks == 16 || kBlocks == 32);
  if constexpr (kBlocks == 8) {
    OCTET_WGMMA_BF16_RS(64, OCTET_NAMES_32, "%32", "%33", "%34", "%35", "%36",
                        OCTET_ACC_32("+f", 0));
  } else if constexpr (kBlocks == 16) {
    OCTET_WGMMA_BF16_RS(128, OCTET_NAMES_64, "%64", "%65", "%66", "%67", "%68",
                        OCTET_ACC_64("+f", 0));
  } else {
    OCTET_WGMMA_BF16_RS(256, OCTET_NAMES_128, "%128", "%129", "%130", "%131", "%132",
                        OCTET_ACC_128("+f", 0));
  }
}

#undef OCTET_WGMMA_BF16
#undef OCTET_WGMMA_BF16_RS

}  // namespace octet::cuda::ptx
