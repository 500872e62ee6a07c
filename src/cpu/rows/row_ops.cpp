#include "cpu/rows/row_ops.h"

#include "cpu/cpu_features.h"
#include "cpu/rows/row_tables.h"

namespace octet::cpu {

const RowOps& row_ops([[maybe_unused]] Simd widest) {
#if defined(__x86_64__)
  if (widest == Simd::avx512 && cpu_features().avx512) return kRowOpsAvx512;
  if (widest >= Simd::avx2 && cpu_features().avx2) return kRowOpsAvx2;
#elif defined(__aarch64__)
  if (widest == Simd::neon) return kRowOpsNeon;
#endif
  return kRowOpsScalar;
}

}  // namespace octet::cpu
