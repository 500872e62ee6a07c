// The store of the kernels whose accumulators are row-major, [rows][kTileN], in the primitives of a
// Vec (simd/vec_*.h). Internal to the translation unit that includes it: see simd/vec_scalar.h for
// why.
#pragma once

#include "cpu/matmul/float_microkernel.h"

namespace octet::cpu {
namespace {

template <class V, int kTileN, class T>
void store_rows_as(const OutTile& tile) {
  static_assert(kTileN % V::kWidth == 0);
  // Nearly all tiles are whole; their loop has a constant length, twice as fast as up to `columns`.
  const bool whole = tile.columns == kTileN;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* acc = tile.acc + i * kTileN;
    T* row = static_cast<T*>(tile.data) + i * tile.row_stride;
    T ragged[kTileN];
    T* to = whole ? row : ragged;
    for (int j = 0; j < kTileN; j += V::kWidth) {
      auto value = V::load(acc + j);
      if (tile.bias != nullptr) value = V::add(value, V::load(tile.bias + j));
      V::store(to + j, value);
    }
    if (whole) continue;
    for (int64_t j = 0; j < tile.columns; ++j) row[j] = ragged[j];
  }
}

template <class V, int kTileN>
void store_rows(const OutTile& tile) {
  switch (tile.type) {
    case DType::bf16: return store_rows_as<V, kTileN, bf16_t>(tile);
    case DType::f16: return store_rows_as<V, kTileN, f16_t>(tile);
    default: return store_rows_as<V, kTileN, float>(tile);
  }
}

}  // namespace
}  // namespace octet::cpu
