#include "cpu/rows/row_algorithms.h"
#include "cpu/rows/row_functions.h"
#include "cpu/rows/row_tables.h"
#include "cpu/simd/vec_avx512.h"

namespace {

template <>
int64_t near_butterflies<VecAvx512>(float* x, int64_t k, int64_t group) {
  if (group == 4) {
    int64_t i = 0;
    for (; i + VecAvx512::kWidth <= k; i += VecAvx512::kWidth) {
      VecAvx512::store(x + i, VecAvx512::butterfly_1(VecAvx512::load(x + i)));
    }
    butterflies_apart<VecScalar>(x + i, k - i, 1);
  } else {  // k is a multiple of 16: both near butterflies in one go
    for (int64_t i = 0; i < k; i += VecAvx512::kWidth) {
      const auto value = VecAvx512::butterfly_1(VecAvx512::load(x + i));
      VecAvx512::store(x + i, VecAvx512::butterfly_4(value));
    }
  }
  return 16;
}

}  // namespace

namespace octet::cpu {

constinit const RowOps kRowOpsAvx512 = row_ops_of<VecAvx512>(Simd::avx512);

}  // namespace octet::cpu
