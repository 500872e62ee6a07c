// The table of row operations in the primitives of one Vec. Included by one file per instruction
// set, after its near_butterflies.
#pragma once

#include "cpu/rows/model_rows.h"
#include "cpu/rows/row_algorithms.h"

namespace {

template <class V>
constexpr octet::cpu::RowOps row_ops_of(octet::cpu::Simd simd) {
  return {
      .simd = simd,
      .quantize = quantize_row<V>,
      .quantize_searched = quantize_row_searched<V>,
      .dequantize = dequantize_row<V>,
      .epilogue = epilogue_tile<V>,
      .norm = norm_row<V>,
      .rotate_head = rotate_head<V>,
      .swiglu = swiglu_row<V>,
      .silu = silu_row<V>,
      .affine = affine_row<V>,
      .add = add_row<V>,
      .largest = largest_of<V>,
      .exponentials = exponentials_of<V>,
      .scale = scale_row<V>,
      .rescale_and_add = rescale_and_add_row<V>,
  };
}

}  // namespace
