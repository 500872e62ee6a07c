// The f32 kernel for every aarch64 CPU: 8 rows of a times 12 columns, 24 accumulators in registers,
// three registers for b and two for a, whose lanes the multiplications read directly.
//
// Panels are interleaved, a as [k][8] and b as [k][12], in f32; bf16 inputs are widened as they are
// packed. Accumulators lie as [8][12].
#include "cpu/matmul/neon_rows.h"

namespace octet::cpu {
namespace {

// The elements [column, column + 4) of a row as f32; those from source.k on are zero.
inline float32x4_t load_4(const PanelSource& source, int64_t row, int64_t column) {
  const int64_t at = row * source.row_stride + column;
  const int64_t left = source.k - column;
  if (source.is_bf16) {
    const auto* from = static_cast<const bf16_t*>(source.data) + at;
    bf16_t tail[4] = {};
    for (int64_t p = 0; left < 4 && p < left; ++p) tail[p] = from[p];
    return VecNeon::load(left < 4 ? tail : from);
  }
  const auto* from = static_cast<const float*>(source.data) + at;
  float tail[4] = {};
  for (int64_t p = 0; left < 4 && p < left; ++p) tail[p] = from[p];
  return vld1q_f32(left < 4 ? tail : from);
}

void pack_a(const PanelSource& source, void* panel) {
  pack_interleaved_scalar(source, kTileM, static_cast<float*>(panel));
}

void pack_b(const PanelSource& source, void* panel) {
  for (int64_t p = 0; p < source.k; p += 4) {
    const int64_t count = source.k - p < 4 ? source.k - p : 4;
    for (int first = 0; first < kTileN; first += 4) {
      float32x4_t row[4];
      for (int i = 0; i < 4; ++i) {
        // Missing rows repeat the last one.
        row[i] = load_4(source, first + i < source.rows ? first + i : source.rows - 1, p);
      }
      const float32x4x2_t even = vtrnq_f32(row[0], row[1]);
      const float32x4x2_t odd = vtrnq_f32(row[2], row[3]);
      const float32x4_t column[4] = {
          vcombine_f32(vget_low_f32(even.val[0]), vget_low_f32(odd.val[0])),
          vcombine_f32(vget_low_f32(even.val[1]), vget_low_f32(odd.val[1])),
          vcombine_f32(vget_high_f32(even.val[0]), vget_high_f32(odd.val[0])),
          vcombine_f32(vget_high_f32(even.val[1]), vget_high_f32(odd.val[1]))};
      float* to = static_cast<float*>(panel) + p * kTileN + first;
      for (int64_t i = 0; i < count; ++i) vst1q_f32(to + i * kTileN, column[i]);
    }
  }
}

// Four rows of accumulators gain one column of a times one row of b.
inline void multiply_four(float32x4_t (&c)[4][3], float32x4_t a, const float32x4_t (&b)[3]) {
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    c[0][j] = vfmaq_laneq_f32(c[0][j], b[j], a, 0);
    c[1][j] = vfmaq_laneq_f32(c[1][j], b[j], a, 1);
    c[2][j] = vfmaq_laneq_f32(c[2][j], b[j], a, 2);
    c[3][j] = vfmaq_laneq_f32(c[3][j], b[j], a, 3);
  }
}

template <int kFours>
void multiply_fours(const MultiplyArgs& args) {
  const auto* a = static_cast<const float*>(args.a_panel);
  const auto* b = static_cast<const float*>(args.b_panel);
  float32x4_t c[kFours][4][3];
#pragma GCC unroll 24
  for (int i = 0; i < kFours * 12; ++i) {
    c[i / 12][i / 3 % 4][i % 3] = args.accumulate ? vld1q_f32(args.acc + i * 4) : vdupq_n_f32(0);
  }
  for (int64_t p = 0; p < args.k; ++p, a += kTileM, b += kTileN) {
    const float32x4_t row[3] = {vld1q_f32(b), vld1q_f32(b + 4), vld1q_f32(b + 8)};
#pragma GCC unroll 2
    for (int four = 0; four < kFours; ++four) {
      multiply_four(c[four], vld1q_f32(a + four * 4), row);
    }
  }
#pragma GCC unroll 24
  for (int i = 0; i < kFours * 12; ++i) {
    vst1q_f32(args.acc + i * 4, c[i / 12][i / 3 % 4][i % 3]);
  }
}

// Up to four rows of a do not cost as much as eight.
void multiply(const MultiplyArgs& args) {
  return args.rows <= 4 ? multiply_fours<1>(args) : multiply_fours<2>(args);
}

}  // namespace

const FloatMicroKernel kNeonF32MicroKernel = {
    .tile_m = kTileM,
    .tile_n = kTileN,
    .k_step = 1,
    .k_block = 256,  // b panel 12 KB of L1, and 512 rows of a 512 KB
    .packed_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
    .store = store,
    .begin_task = nullptr,
    .end_task = nullptr,
};

}  // namespace octet::cpu
