#include "cpu/rows/row_algorithms.h"
#include "cpu/rows/row_functions.h"
#include "cpu/rows/row_tables.h"
#include "cpu/simd/vec_neon.h"

namespace {

template <>
int64_t near_butterflies<VecNeon>(float* x, int64_t k, int64_t group) {
  (void)group;
  for (int64_t i = 0; i < k; i += VecNeon::kWidth) {
    VecNeon::store(x + i, VecNeon::butterfly_1(VecNeon::load(x + i)));
  }
  return 4;
}

}  // namespace

namespace octet::cpu {

constinit const RowOps kRowOpsNeon = row_ops_of<VecNeon>(Simd::neon);

}  // namespace octet::cpu
