// The bf16 kernel for aarch64 with BF16 matrix instructions: BFMMLA multiplies 2 rows x 4 by 2
// columns x 4 into 2 x 2 accumulators. 8 rows of a times 12 columns: 24 registers of 2 x 2
// accumulators, six of b, one of a.
//
// Panels are [k / 4][rows][4] in bf16: packing copies 8 bytes at a time. Accumulators lie as
// [8][12].
#include "cpu/matmul/neon_rows.h"

namespace octet::cpu {
namespace {

constexpr int kStep = 4;  // k per BFMMLA

void pack(const PanelSource& source, int tile, uint16_t* panel) {
  for (int row = 0; row < tile; ++row) {
    // Missing rows repeat the last one.
    const auto* from = static_cast<const uint16_t*>(source.data) +
                       (row < source.rows ? row : source.rows - 1) * source.row_stride;
    uint16_t* to = panel + row * kStep;
    int64_t p = 0;
    for (; p + kStep <= source.k; p += kStep, to += tile * kStep) vst1_u16(to, vld1_u16(from + p));
    if (p == source.k) continue;
    for (int i = 0; i < kStep; ++i) to[i] = p + i < source.k ? from[p + i] : uint16_t{0};
  }
}

void pack_a(const PanelSource& source, void* panel) {
  pack(source, kTileM, static_cast<uint16_t*>(panel));
}

void pack_b(const PanelSource& source, void* panel) {
  pack(source, kTileN, static_cast<uint16_t*>(panel));
}

inline bfloat16x8_t load_pair(const uint16_t* from) {
  return vreinterpretq_bf16_u16(vld1q_u16(from));
}

template <int kPairs>  // of rows of a
void multiply_pairs(const MultiplyArgs& args) {
  const auto* a = static_cast<const uint16_t*>(args.a_panel);
  const auto* b = static_cast<const uint16_t*>(args.b_panel);
  float32x4_t c[kPairs][6];
#pragma GCC unroll 4
  for (int i = 0; i < kPairs; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      const float* at = args.acc + i * 2 * kTileN + j * 2;
      c[i][j] =
          args.accumulate ? vcombine_f32(vld1_f32(at), vld1_f32(at + kTileN)) : vdupq_n_f32(0);
    }
  }
  for (int64_t p = 0; p < args.k; p += kStep, a += kTileM * kStep, b += kTileN * kStep) {
    bfloat16x8_t columns[6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) columns[j] = load_pair(b + j * 8);
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const bfloat16x8_t rows = load_pair(a + i * 8);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) c[i][j] = vbfmmlaq_f32(c[i][j], rows, columns[j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kPairs; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      float* at = args.acc + i * 2 * kTileN + j * 2;
      vst1_f32(at, vget_low_f32(c[i][j]));
      vst1_f32(at + kTileN, vget_high_f32(c[i][j]));
    }
  }
}

// A kernel for each number of row pairs: one row of a should not cost as much as eight.
void multiply(const MultiplyArgs& args) {
  static constexpr void (*kByPairs[])(const MultiplyArgs&) = {multiply_pairs<1>, multiply_pairs<2>,
                                                              multiply_pairs<3>, multiply_pairs<4>};
  kByPairs[(args.rows - 1) / 2](args);
}

}  // namespace

const FloatMicroKernel kNeonBf16MicroKernel = {
    .tile_m = kTileM,
    .tile_n = kTileN,
    .k_step = kStep,
    .k_block = 512,  // b panel 12 KB of L1, and 512 rows of a 512 KB
    .packed_bytes = 2,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
    .store = store,
    .begin_task = nullptr,
    .end_task = nullptr,
};

}  // namespace octet::cpu
