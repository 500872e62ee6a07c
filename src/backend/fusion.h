// What a GEMM does with its scaled accumulators besides rounding them; see gemm.h for the
// arithmetic. Apart from it because device code, and code for wide CPU instructions, include this
// too: plain data and declarations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octet {

// THE list of fusions, one per line (cmake/cuda.cmake reads these lines, too). Names, checks,
// tests and the list of CUDA kernels follow from it; ref/gemm.cpp, cpu/rows/row_algorithms.h and
// cuda/gemm/epilogue.cuh do not compile until they know what a new one computes.
//   gated:  of a weight packed as gate and up rows, see Backend::pack; out is [m, n / 2]
//   biased: reads the weight's bias
// clang-format off
#define OCTET_FUSIONS(FUSION) \
  /*     name    gated  biased */ \
  FUSION(none,   false, false) \
  FUSION(bias,   false, true) \
  FUSION(swiglu, true,  false)
// clang-format on

#define OCTET_FUSION(name, gated, biased) name,
enum class Fusion : uint8_t { OCTET_FUSIONS(OCTET_FUSION) };
#undef OCTET_FUSION

struct FusionRow {
  Fusion fusion;
  std::string_view name;
  bool gated;
  bool biased;
};

#define OCTET_FUSION(name, gated, biased) {Fusion::name, #name, gated, biased},
inline constexpr FusionRow kFusions[] = {OCTET_FUSIONS(OCTET_FUSION)};
#undef OCTET_FUSION
inline constexpr size_t kFusionCount = sizeof(kFusions) / sizeof(FusionRow);

const FusionRow& traits_of(Fusion fusion);
std::string_view name_of(Fusion fusion);
// Of an output whose accumulators have n.
int64_t output_columns(Fusion fusion, int64_t n);

}  // namespace octet
