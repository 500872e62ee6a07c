// The row operations of one instruction set, as plain functions on pointers.
//
// This header is included by files compiled for wide instruction sets, so it holds nothing that
// could leave an out-of-line copy behind: plain data and declarations.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace octet::cpu {

enum class Simd : uint8_t { scalar, avx2, avx512, neon };

// What a row of activations has to go through before it is quantized.
struct RowTransform {
  const float* smooth = nullptr;  // [k] multipliers, or null
  int64_t group = 0;              // rotation group, or 0
};

struct EpilogueTile {
  const int32_t* acc;  // [rows][acc_stride]
  int64_t acc_stride;
  int64_t rows;
  int64_t columns;
  const float* row_scale;  // [rows]
  const float* col_scale;  // [columns]
  const float* bias;       // [columns], or null
  bool gated;              // gate and up columns alternate: swiglu halves them
  int64_t out_columns;     // columns, or half of them
  char* out;
  int64_t out_stride_bytes;
  DType dtype;  // i32 copies the accumulators
};

struct RowOps {
  Simd simd;

  // x [k] of f32, bf16 or f16 -> q [k] and its scale; scratch is f32 [k].
  void (*quantize)(const void* x, DType dtype, int64_t k, const RowTransform& transform,
                   float* scratch, int8_t* q, float* scale);

  // out[j] = float(q[j]) * scale
  void (*dequantize)(const int8_t* q, float scale, int64_t k, void* out, DType dtype);

  // The epilogue of the numeric contract on a tile of accumulators.
  void (*epilogue)(const EpilogueTile& tile);
};

// The best for this CPU, no wider than `widest`; scalar is always there.
const RowOps& row_ops(Simd widest);

}  // namespace octet::cpu
