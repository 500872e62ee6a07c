#include "cpu/rows/row_algorithms.h"
#include "cpu/rows/row_functions.h"
#include "cpu/rows/row_tables.h"
#include "cpu/simd/vec_avx2.h"

namespace {

template <>
int64_t near_butterflies<VecAvx2>(float* x, int64_t k, int64_t group) {
  for (int64_t i = 0; i < k; i += VecAvx2::kWidth) {
    // A group of 4 leaves a tail of half a register when k is an odd multiple of 4.
    if (i + VecAvx2::kWidth > k) {
      butterflies_apart<VecScalar>(x + i, k - i, 1);
      break;
    }
    VecAvx2::store(x + i, VecAvx2::butterfly_1(VecAvx2::load(x + i)));
  }
  if (group > 4) butterflies_apart<VecSse>(x, k, 4);
  return 16;
}

}  // namespace

namespace octet::cpu {

constinit const RowOps kRowOpsAvx2 = row_ops_of<VecAvx2>(Simd::avx2);

}  // namespace octet::cpu
