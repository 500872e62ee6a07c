// Descriptions of a GEMM's operands for TMA (Hopper).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "cuda/gemm/operand_maps.h"

namespace octet::cuda {

class TensorMaps {
 public:
  // Activations I8 [m, k], rows `stride` bytes apart (a multiple of 16); boxes of 128 bytes of
  // `box_rows` rows.
  static CUtensorMap activations(const int8_t* a, int64_t m, int64_t k, int64_t stride,
                                 int box_rows);

  // A weight as pack.h lays it out. Made once per weight: models have the same ones at each step.
  // (What is remembered depends on nothing but the arguments, so a weight that is gone does no
  // harm.) Valid until the next call.
  const CUtensorMap& weight(const int8_t* w, int64_t n, int64_t k, int box_rows);

 private:
  using Key = std::tuple<const int8_t*, int64_t, int64_t, int>;
  std::map<Key, CUtensorMap> weights_;
};

}  // namespace octet::cuda
