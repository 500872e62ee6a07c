// The INT8 tensor-core instruction of Hopper (sm_90a): a warpgroup, four warps, multiplies operands
// that lie in shared memory, asynchronously.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Where an operand lies: rows of 128 bytes, groups of eight rows 1024 bytes apart, swizzled as TMA
// leaves them (chunk ^ row % 8). `address` may point inside the first 128 bytes, at multiples of
// 32: that is how a step of k is chosen. Groups begin at multiples of 1024.
__device__ __forceinline__ uint64_t wgmma_operand(uint32_t address) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kGroupStride = uint64_t{1024 >> 4} << 32;
  constexpr uint64_t kUnused = uint64_t{1} << 16;  // the other stride, which swizzling fixes
  return kSwizzle128 | kGroupStride | kUnused | ((address & 0x3ffff) >> 4);
}

// Before the first multiplication that touches registers which other instructions have written.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Closes the group of all multiplications so far.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until no more than kPending groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

#define OCTET_NAMES_32                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define OCTET_NAMES_64                                                               \
  OCTET_NAMES_32                                                                     \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define OCTET_NAMES_96                                                               \
  OCTET_NAMES_64                                                                     \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define OCTET_NAMES_128                                                                    \
  OCTET_NAMES_96                                                                           \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110" \
  ", %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124"   \
  ", %125, %126, %127"
#define OCTET_ACC_4(j) "+r"(acc[j][0]), "+r"(acc[j][1]), "+r"(acc[j][2]), "+r"(acc[j][3])
#define OCTET_SUMS_16(j) \
  OCTET_ACC_4(j), OCTET_ACC_4((j) + 1), OCTET_ACC_4((j) + 2), OCTET_ACC_4((j) + 3)
#define OCTET_SUMS_32(j) OCTET_SUMS_16(j), OCTET_SUMS_16((j) + 4)
#define OCTET_SUMS_64(j) OCTET_SUMS_32(j), OCTET_SUMS_32((j) + 8)
// n columns; `names` of n / 2 registers, then the numbers of the three operands that follow.
#define OCTET_WGMMA(n, names, a_name, b_name, p_name, ...)                                  \
  asm volatile("{\n .reg .pred adds;\n setp.ne.b32 adds, " p_name                           \
               ", 0;\n"                                                                     \
               " wgmma.mma_async.sync.aligned.m64n" #n "k32.s32.s8.s8 {" names "}, " a_name \
               ", " b_name ", adds;\n}"                                                     \
               : __VA_ARGS__                                                                \
               : "l"(a), "l"(b), "r"(static_cast<int>(adds)))

// acc [64, 8 kBlocks] (+)= a [64, 32] times b [8 kBlocks, 32] transposed, exact in int32. Warp w
// of the four holds rows 16 w to 16 w + 15; within them lane l, g = l / 4, t = l % 4, holds of
// acc[j] the columns 8 j + 2 t and 8 j + 2 t + 1 of rows g (0, 1) and g + 8 (2, 3). Nobody may
// touch the accumulators before wgmma_wait.
template <int kBlocks>
__device__ __forceinline__ void wgmma_64xNx32(int32_t (&acc)[kBlocks][4], uint64_t a, uint64_t b,
                                              bool adds) {
  static_assert(kBlocks == 8 || kBlocks == 16 || kBlocks == 24 || kBlocks == 32);
  if constexpr (kBlocks == 8) {
    OCTET_WGMMA(64, OCTET_NAMES_32, "%32", "%33", "%34", OCTET_SUMS_32(0));
  } else if constexpr (kBlocks == 16) {
    OCTET_WGMMA(128, OCTET_NAMES_64, "%64", "%65", "%66", OCTET_SUMS_64(0));
  } else if constexpr (kBlocks == 24) {
    OCTET_WGMMA(192, OCTET_NAMES_96, "%96", "%97", "%98", OCTET_SUMS_64(0), OCTET_SUMS_32(16));
  } else {
    OCTET_WGMMA(256, OCTET_NAMES_128, "%128", "%129", "%130", OCTET_SUMS_64(0), OCTET_SUMS_64(16));
  }
}

#undef OCTET_NAMES_32
#undef OCTET_NAMES_64
#undef OCTET_NAMES_96
#undef OCTET_NAMES_128
#undef OCTET_ACC_4
#undef OCTET_SUMS_16
#undef OCTET_SUMS_32
#undef OCTET_SUMS_64
#undef OCTET_WGMMA

}  // namespace octet::cuda::ptx
