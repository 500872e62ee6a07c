// The bf16 kernel for AMX: 32 rows of a times 32 columns, four tiles of 16 x 16 accumulators.
//
// TDPBF16PS multiplies a plain tile (16 rows x 32 consecutive k) by a paired one (16 pairs of k x
// 16 columns). The weight b takes the plain role, because it is by far the larger operand and is
// then packed by plain copies; a is arranged in pairs, once per call. The tiles of accumulators
// are therefore transposed, [n][m], and transposed back when they are stored: there are fewer
// accumulators than weights, too.
//
// Panels: b as [k / 32][2][16 rows][32], a as [k / 32][2][16 pairs][16 rows][2], accumulators as
// [2 along n][2 along m][16][16]. A tile is 1 KB without gaps: rows of a weight at their natural
// distance (24,576 bytes for k = 12,288) would all map to the same few sets of L1.
#include "cpu/matmul/avx512_rows.h"
#include "cpu/simd/amx_tiles.h"

namespace octet::cpu {
namespace {

constexpr int kTile = 32;  // rows of a, and columns, per micro-kernel
constexpr int kStep = 32;  // k per TDPBF16PS
constexpr int kTileBytes = 1024;
constexpr int kTileFloats = 256;

// The 64 bytes of a row from `column` on; zeros past the end of the row.
inline __m512i load_chunk(const PanelSource& source, int64_t row, int64_t column) {
  const int64_t present = row < source.rows ? row : source.rows - 1;
  const auto* from =
      static_cast<const uint16_t*>(source.data) + present * source.row_stride + column;
  const int64_t left = source.k - column;
  if (left >= kStep) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16((__mmask32{1} << left) - 1, from);
}

void pack_a(const PanelSource& source, void* panel) {
  auto* to = static_cast<char*>(panel);
  for (int64_t p = 0; p < source.k; p += kStep) {
    for (int half = 0; half < 2; ++half, to += kTileBytes) {
      __m512i pairs[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) pairs[i] = load_chunk(source, half * 16 + i, p);
      transpose_16x16(pairs);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * 64, pairs[i]);
    }
  }
}

// Row by row: the hardware prefetchers follow a row, not sixteen at once.
void pack_b(const PanelSource& source, void* panel) {
  for (int row = 0; row < kTile; ++row) {
    auto* to = static_cast<char*>(panel) + row * 64;
    for (int64_t p = 0; p < source.k; p += kStep, to += 2 * kTileBytes) {
      _mm512_store_si512(to, load_chunk(source, row, p));
    }
  }
}

void multiply(const MultiplyArgs& args) {
  const auto* a = static_cast<const char*>(args.a_panel);
  const auto* b = static_cast<const char*>(args.b_panel);
  float* acc = args.acc;
  if (args.accumulate) {
    _tile_loadd(0, acc, 64);
    _tile_loadd(1, acc + kTileFloats, 64);
    _tile_loadd(2, acc + 2 * kTileFloats, 64);
    _tile_loadd(3, acc + 3 * kTileFloats, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t p = 0; p < args.k; p += kStep, a += 2 * kTileBytes, b += 2 * kTileBytes) {
    _tile_loadd(4, b, 64);
    _tile_loadd(6, a, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, a + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, b + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, acc, 64);
  _tile_stored(1, acc + kTileFloats, 64);
  _tile_stored(2, acc + 2 * kTileFloats, 64);
  _tile_stored(3, acc + 3 * kTileFloats, 64);
}

void store(const OutTile& tile) {
  for (int along_n = 0; along_n < 2; ++along_n) {
    const __mmask16 lanes = first_lanes(tile.columns - along_n * 16);
    for (int along_m = 0; along_m < 2; ++along_m) {
      const int64_t rows = tile.rows - along_m * 16;
      if (lanes == 0 || rows <= 0) continue;
      const float* acc = tile.acc + (along_n * 2 + along_m) * kTileFloats;
      __m512i block[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) block[i] = _mm512_load_si512(acc + i * 16);
      transpose_16x16(block);
      const int64_t count = rows < 16 ? rows : 16;
      for (int64_t i = 0; i < count; ++i) {
        const __m512 values = add_bias(_mm512_castsi512_ps(block[i]), tile, along_n * 16);
        store_16(values, tile.type, tile.data, (along_m * 16 + i) * tile.row_stride + along_n * 16,
                 lanes);
      }
    }
  }
}

}  // namespace

const FloatMicroKernel kAmxBf16MicroKernel = {
    .tile_m = kTile,
    .tile_n = kTile,
    .k_step = kStep,
    // Panels of 16 KB, so that one of each operand stays in a 48 KB L1. With 512 the accumulators
    // are read and written half as often, but a comes from L2; it was slower.
    .k_block = 256,
    .packed_bytes = 2,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
    .store = store,
    .begin_task = load_tile_config,
    .end_task = release_tiles,
};

}  // namespace octet::cpu
