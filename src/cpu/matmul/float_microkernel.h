// What one instruction set implements of the unquantized matmul: packing panels, multiplying a pair
// of panels, and writing a tile of the result.
//
// Plain data and function pointers only. Files compiled for one instruction set include this,
// intrinsics and headers whose code is internal to each file (simd/vec_*.h): an inline function
// shared with other files could survive the link in its AVX-512 copy and crash an older CPU.
//
// A panel is `tile_m` rows of a, or `tile_n` rows of b, times one block of k, in whatever order the
// kernel's own multiply reads. The missing rows of a ragged panel may contain anything, because
// their results are never stored; columns that pad k to `k_step` must be zero in both operands.
// Panels and accumulators start at multiples of 64 bytes where their sizes allow it.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace octet::cpu {

struct PanelSource {
  const void* data;    // the first element of the block
  int64_t row_stride;  // in elements
  int64_t rows;        // from 1 to the tile's height
  int64_t k;           // from 1 to the block's length, not padded
  bool is_bf16;        // else f32
};

struct MultiplyArgs {
  const void* a_panel;
  const void* b_panel;
  int64_t k;        // a multiple of k_step
  int64_t rows;     // of a that count; the kernel may compute all of tile_m
  float* acc;       // tile_m * tile_n, in an order that the kernel's store understands
  bool accumulate;  // add to `acc`, else overwrite them
};

struct OutTile {
  const float* acc;
  void* data;          // the tile's first element in the result
  int64_t row_stride;  // in elements
  int64_t rows;        // from 1 to tile_m
  int64_t columns;     // from 1 to tile_n
  // f32, bf16 or f16; rounded to nearest, ties to even, and a NaN becomes the canonical one.
  DType type;
  // [tile_n], added before the rounding, or null. Past `columns` it may contain anything.
  const float* bias;
};

struct FloatMicroKernel {
  int tile_m;
  int tile_n;
  int k_step;
  int k_block;       // the longest block of k, a multiple of k_step
  int packed_bytes;  // of one element in a panel
  void (*pack_a)(const PanelSource& source, void* panel);
  void (*pack_b)(const PanelSource& source, void* panel);
  void (*multiply)(const MultiplyArgs& args);
  void (*store)(const OutTile& tile);
  void (*begin_task)();  // on the thread that will multiply; null when there is nothing to do
  void (*end_task)();
};

// The portable packing [k][tile] in f32, compiled for the baseline CPU. Kernels without a better
// one of their own use it for `a`, which is small: m rows against n of the weight.
void pack_interleaved_scalar(const PanelSource& source, int tile, float* panel);

extern const FloatMicroKernel kScalarMicroKernel;
#if defined(__x86_64__)
extern const FloatMicroKernel kAvx2F32MicroKernel;
extern const FloatMicroKernel kAvx512F32MicroKernel;
extern const FloatMicroKernel kAmxBf16MicroKernel;
#elif defined(__aarch64__)
extern const FloatMicroKernel kNeonF32MicroKernel;
extern const FloatMicroKernel kNeonBf16MicroKernel;
#endif

}  // namespace octet::cpu
