// The f32 kernel for AVX2 with FMA: 6 rows of a times 16 columns, 12 accumulators in registers, two
// registers for b and one for the broadcast element of a.
//
// Panels are interleaved, a as [k][6] and b as [k][16], in f32; bf16 inputs are widened as they are
// packed. Accumulators lie as [6][16].
#include <immintrin.h>

#include "cpu/matmul/store_rows.h"
#include "cpu/simd/vec_avx2.h"

namespace octet::cpu {
namespace {

constexpr int kTileM = 6;
constexpr int kTileN = 16;

// The elements [column, column + 8) of a row as f32; those from source.k on are zero.
inline __m256 load_8(const PanelSource& source, int64_t row, int64_t column) {
  const int64_t at = row * source.row_stride + column;
  const int64_t left = source.k - column;
  if (source.is_bf16) {
    const auto* from = static_cast<const bf16_t*>(source.data) + at;
    if (left >= 8) return VecAvx2::load(from);
    bf16_t tail[8] = {};
    for (int64_t p = 0; p < left; ++p) tail[p] = from[p];
    return VecAvx2::load(tail);
  }
  const auto* from = static_cast<const float*>(source.data) + at;
  if (left >= 8) return _mm256_loadu_ps(from);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(left)), lane);
  return _mm256_maskload_ps(from, mask);
}

inline void transpose_8x8(__m256 (&r)[8]) {
  __m256 t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = t[i];
}

void pack_a(const PanelSource& source, void* panel) {
  pack_interleaved_scalar(source, kTileM, static_cast<float*>(panel));
}

void pack_b(const PanelSource& source, void* panel) {
  for (int first = 0; first < kTileN; first += 8) {
    for (int64_t p = 0; p < source.k; p += 8) {
      __m256 block[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        // Missing rows repeat the last one.
        const int64_t row = first + i < source.rows ? first + i : source.rows - 1;
        block[i] = load_8(source, row, p);
      }
      transpose_8x8(block);
      float* to = static_cast<float*>(panel) + p * kTileN + first;
      const int64_t count = source.k - p < 8 ? source.k - p : 8;
      for (int64_t i = 0; i < count; ++i) _mm256_storeu_ps(to + i * kTileN, block[i]);
    }
  }
}

template <int kRows>
void multiply_rows(const MultiplyArgs& args) {
  const auto* a = static_cast<const float*>(args.a_panel);
  const auto* b = static_cast<const float*>(args.b_panel);
  __m256 c[kRows][2];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    c[i][0] = args.accumulate ? _mm256_loadu_ps(args.acc + i * kTileN) : _mm256_setzero_ps();
    c[i][1] = args.accumulate ? _mm256_loadu_ps(args.acc + i * kTileN + 8) : _mm256_setzero_ps();
  }
  for (int64_t p = 0; p < args.k; ++p, a += kTileM, b += kTileN) {
    const __m256 b0 = _mm256_loadu_ps(b);
    const __m256 b1 = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const __m256 broadcast = _mm256_broadcast_ss(a + i);
      c[i][0] = _mm256_fmadd_ps(broadcast, b0, c[i][0]);
      c[i][1] = _mm256_fmadd_ps(broadcast, b1, c[i][1]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    _mm256_storeu_ps(args.acc + i * kTileN, c[i][0]);
    _mm256_storeu_ps(args.acc + i * kTileN + 8, c[i][1]);
  }
}

// A kernel for each number of rows: one row of a should not cost as much as six.
void multiply(const MultiplyArgs& args) {
  static constexpr void (*kByRows[kTileM])(const MultiplyArgs&) = {
      multiply_rows<1>, multiply_rows<2>, multiply_rows<3>,
      multiply_rows<4>, multiply_rows<5>, multiply_rows<6>};
  kByRows[args.rows - 1](args);
}

void store(const OutTile& tile) { store_rows<VecAvx2, kTileN>(tile); }

}  // namespace

const FloatMicroKernel kAvx2F32MicroKernel = {
    .tile_m = kTileM,
    .tile_n = kTileN,
    .k_step = 1,
    .k_block = 256,  // b panel 16 KB of a 32 KB L1, and 512 rows of a 512 KB
    .packed_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
    .store = store,
    .begin_task = nullptr,
    .end_task = nullptr,
};

}  // namespace octet::cpu
