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
  // (What is remembered depends only on the arguments, so a weight that no longer exists does no
  // harm.) Valid until the next call.
  const CUtensorMap& weight(const int8_t* w, int64_t n, int64_t k, int box_rows);

  // A weight in plain rows `stride` bytes apart, whose boxes have the rows in the order of pack.h:
  // place 32 g + 8 j + 2 a + b of a box is channel 32 g + 8 a + 2 j + b, so the map has a dimension
  // for each of b, a, j and g. Of a gated weight, b tells up from gate, and they are half of all
  // rows apart. Remembered likewise.
  const CUtensorMap& plain_weight(const int8_t* w, int64_t n, int64_t k, int64_t stride, bool gated,
                                  int box_rows);

 private:
  // The stride is 0 for a packed weight.
  using Key = std::tuple<const int8_t*, int64_t, int64_t, int64_t, bool, int>;
  template <class Make>
  const CUtensorMap& remember(const Key& key, Make make);

  std::map<Key, CUtensorMap> weights_;
};

}  // namespace octet::cuda
