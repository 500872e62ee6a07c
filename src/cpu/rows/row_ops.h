// The row operations of one instruction set, as plain functions on pointers.
//
// This header is included by files compiled for wide instruction sets, so it contains nothing that
// could leave an out-of-line copy behind: only plain data and declarations.
#pragma once

#include <cstdint>

#include "backend/fusion.h"
#include "tensor/dtype.h"

namespace octet::cpu {

enum class Simd : uint8_t { scalar, avx2, avx512, neon };

// What is done to a row of activations before it is quantized.
struct RowTransform {
  const float* smooth = nullptr;  // [k] multipliers, or null
  int64_t group = 0;              // rotation group, or 0
  bool stepwise = false;          // see ActivationTransform; not with searched scales
  float lowest_code = -127;       // when stepwise
};

// See Backend::quantize_rows_searched().
struct ClipRatios {
  const float* values;  // 1 is the first
  int count;
};

struct EpilogueTile {
  const int32_t* acc;  // [rows][acc_stride]
  int64_t acc_stride;
  int64_t rows;
  int64_t columns;
  const float* row_scale;  // [rows]
  const float* col_scale;  // [columns]
  Fusion fusion;
  const float* bias;    // [columns], or null if the fusion reads none
  int64_t out_columns;  // see output_columns()
  char* out;
  int64_t out_stride_bytes;
  DType dtype;  // i32 copies the accumulators
};

// norm(x) * gain, see RowNorm.
struct NormRow {
  bool centered;  // a layer norm subtracts the mean, an RMS norm does not
  float eps;
  const float* gain;  // [channels], or null for ones
};

struct HeadAngles {
  const float* weight;  // [2 * half], of the norm
  const float* cos;     // [half]
  const float* sin;
  int64_t half;
  float eps;
};

// (x - mean) * gain + bias, each [channels]; then SiLU if requested.
struct AffineRow {
  const float* mean;
  const float* gain;
  const float* bias;
  bool silu;
};

// Rows are f32 or bf16 unless stated otherwise.
struct RowOps {
  Simd simd;

  // x [k] of f32, bf16 or f16 -> q [k] and its scale; scratch is f32 [k].
  void (*quantize)(const void* x, DType dtype, int64_t k, const RowTransform& transform,
                   float* scratch, int8_t* q, float* scale);

  // The same with the best of several scales.
  void (*quantize_searched)(const void* x, DType dtype, int64_t k, const RowTransform& transform,
                            const ClipRatios& ratios, float* scratch, int8_t* q, float* scale);

  // out[j] = float(q[j]) * scale
  void (*dequantize)(const int8_t* q, float scale, int64_t k, void* out, DType dtype);

  // The epilogue of the numeric contract on a tile of accumulators.
  void (*epilogue)(const EpilogueTile& tile);

  // scratch is f32 [channels] and may be `out` of type f32.
  void (*norm)(const void* x, DType dtype, int64_t channels, const NormRow& how, float* scratch,
               void* out, DType out_dtype);
  // One head in place: RMS norm, then the rotation of its pairs.
  void (*rotate_head)(void* x, DType dtype, const HeadAngles& how);
  void (*swiglu)(const void* gate, const void* up, DType dtype, int64_t count, void* out);
  void (*silu)(const void* x, DType dtype, int64_t count, void* out);
  void (*affine)(const void* x, DType dtype, int64_t count, const AffineRow& how, void* out);
  // h += x, where x has the type of h or is f32.
  void (*add)(void* h, DType dtype, const void* x, DType x_dtype, int64_t count);
  // The largest of count >= 1 values; with a NaN among them, any value.
  float (*largest)(const float* x, int64_t count);
  // out = 2^((x - largest) * factor), no smaller than 2^-126; NaN stays. Returns the sum.
  double (*exponentials)(const float* x, int64_t count, float largest, float factor, void* out,
                         DType out_dtype);
  // out = x * factor
  void (*scale)(const float* x, float factor, int64_t count, void* out, DType out_dtype);
  // acc = acc * factor + x
  void (*rescale_and_add)(float* acc, float factor, const float* x, int64_t count);
};

// The best for this CPU, no wider than `widest`; scalar is always there.
const RowOps& row_ops(Simd widest);

}  // namespace octet::cpu
