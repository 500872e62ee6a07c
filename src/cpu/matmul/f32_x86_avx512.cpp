// The f32 kernel for AVX-512: 14 rows of a times 32 columns, 28 accumulators in registers, two
// registers for b, and a broadcast straight from memory by the multiplication itself.
//
// Panels are interleaved, a as [k][14] and b as [k][32], in f32; bf16 inputs are widened as they
// are packed. Accumulators lie as [14][32].
#include "cpu/matmul/avx512_rows.h"

namespace octet::cpu {
namespace {

constexpr int kTileM = 14;
constexpr int kTileN = 32;

// Elements [0, 16) of a row as f32, those outside of `lanes` zero.
inline __m512i load_16(const PanelSource& source, int64_t row, int64_t column, __mmask16 lanes) {
  const int64_t at = row * source.row_stride + column;
  if (source.is_bf16) {
    const auto* from = static_cast<const uint16_t*>(source.data) + at;
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from)), 16);
  }
  return _mm512_maskz_loadu_epi32(lanes, static_cast<const float*>(source.data) + at);
}

// Rows [first, first + 16) of the source to panel columns [first, first + width); the panel is
// [k][tile]. Missing rows repeat the last one.
void interleave_16(const PanelSource& source, int64_t first, int width, int tile, float* panel) {
  const __mmask16 columns = first_lanes(width);
  for (int64_t p = 0; p < source.k; p += 16) {
    const __mmask16 lanes = first_lanes(source.k - p);
    __m512i block[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const int64_t row = first + i < source.rows ? first + i : source.rows - 1;
      block[i] = load_16(source, row, p, lanes);
    }
    transpose_16x16(block);
    const int64_t count = source.k - p < 16 ? source.k - p : 16;
    float* to = panel + p * tile + first;
    if (count == 16) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_mask_storeu_epi32(to + i * tile, columns, block[i]);
    } else {
      for (int i = 0; i < count; ++i) _mm512_mask_storeu_epi32(to + i * tile, columns, block[i]);
    }
  }
}

void pack_a(const PanelSource& source, void* panel) {
  interleave_16(source, 0, kTileM, kTileM, static_cast<float*>(panel));
}

void pack_b(const PanelSource& source, void* panel) {
  interleave_16(source, 0, 16, kTileN, static_cast<float*>(panel));
  interleave_16(source, 16, 16, kTileN, static_cast<float*>(panel));
}

template <int kRows>
void multiply_rows(const MultiplyArgs& args) {
  const auto* a = static_cast<const float*>(args.a_panel);
  const auto* b = static_cast<const float*>(args.b_panel);
  __m512 c[kRows][2];
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
    c[i][0] = args.accumulate ? _mm512_loadu_ps(args.acc + i * kTileN) : _mm512_setzero_ps();
    c[i][1] = args.accumulate ? _mm512_loadu_ps(args.acc + i * kTileN + 16) : _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < args.k; ++p, a += kTileM, b += kTileN) {
    const __m512 b0 = _mm512_loadu_ps(b);
    const __m512 b1 = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 14
    for (int i = 0; i < kRows; ++i) {
      const __m512 broadcast = _mm512_set1_ps(a[i]);
      c[i][0] = _mm512_fmadd_ps(broadcast, b0, c[i][0]);
      c[i][1] = _mm512_fmadd_ps(broadcast, b1, c[i][1]);
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
    _mm512_storeu_ps(args.acc + i * kTileN, c[i][0]);
    _mm512_storeu_ps(args.acc + i * kTileN + 16, c[i][1]);
  }
}

// A kernel for each number of rows: one row of a should not cost as much as fourteen.
void multiply(const MultiplyArgs& args) {
  static constexpr void (*kByRows[kTileM])(const MultiplyArgs&) = {
      multiply_rows<1>,  multiply_rows<2>,  multiply_rows<3>,  multiply_rows<4>, multiply_rows<5>,
      multiply_rows<6>,  multiply_rows<7>,  multiply_rows<8>,  multiply_rows<9>, multiply_rows<10>,
      multiply_rows<11>, multiply_rows<12>, multiply_rows<13>, multiply_rows<14>};
  kByRows[args.rows - 1](args);
}

void store(const OutTile& tile) {
  const __mmask16 low = first_lanes(tile.columns);
  const __mmask16 high = first_lanes(tile.columns - 16);
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* acc = tile.acc + i * kTileN;
    const int64_t at = i * tile.row_stride;
    store_16(add_bias(_mm512_loadu_ps(acc), tile, 0), tile.type, tile.data, at, low);
    if (high == 0) continue;
    store_16(add_bias(_mm512_loadu_ps(acc + 16), tile, 16), tile.type, tile.data, at + 16, high);
  }
}

}  // namespace

const FloatMicroKernel kAvx512F32MicroKernel = {
    .tile_m = kTileM,
    .tile_n = kTileN,
    .k_step = 1,
    .k_block = 384,  // b panel 48 KB, and 512 rows of a 768 KB: half of a 2 MB L2
    .packed_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
    .store = store,
    .begin_task = nullptr,
    .end_task = nullptr,
};

}  // namespace octet::cpu
