// The kernel that every CPU can run: panels interleaved as [k][tile] in f32, a 4 x 8 tile of
// accumulators that the compiler vectorizes along n with what the baseline offers (SSE2).
#include "cpu/matmul/float_microkernel.h"
#include "tensor/dtype.h"

namespace octet::cpu {
namespace {

constexpr int kTileM = 4;
constexpr int kTileN = 8;

template <class T>
void interleave(const T* data, const PanelSource& source, int tile, float* panel) {
  for (int row = 0; row < tile; ++row) {
    // Missing rows repeat the last one: stale memory might contain subnormals, which are slow.
    const T* from = data + (row < source.rows ? row : source.rows - 1) * source.row_stride;
    for (int64_t p = 0; p < source.k; ++p) panel[p * tile + row] = to_f32(from[p]);
  }
}

void multiply(const MultiplyArgs& args) {
  const auto* a = static_cast<const float*>(args.a_panel);
  const auto* b = static_cast<const float*>(args.b_panel);
  float acc[kTileM][kTileN] = {};
  for (int64_t p = 0; p < args.k; ++p, a += kTileM, b += kTileN) {
    for (int i = 0; i < kTileM; ++i) {
      for (int j = 0; j < kTileN; ++j) acc[i][j] += a[i] * b[j];
    }
  }
  for (int i = 0; i < kTileM; ++i) {
    for (int j = 0; j < kTileN; ++j) {
      float& sum = args.acc[i * kTileN + j];
      sum = args.accumulate ? sum + acc[i][j] : acc[i][j];
    }
  }
}

template <class T>
void store_as(const OutTile& tile) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    T* to = static_cast<T*>(tile.data) + i * tile.row_stride;
    const float* acc = tile.acc + i * kTileN;
    for (int64_t j = 0; j < tile.columns; ++j) {
      to[j] = from_f32<T>(tile.bias == nullptr ? acc[j] : acc[j] + tile.bias[j]);
    }
  }
}

void store(const OutTile& tile) {
  switch (tile.type) {
    case DType::bf16: return store_as<bf16_t>(tile);
    case DType::f16: return store_as<f16_t>(tile);
    default: return store_as<float>(tile);
  }
}

void pack_a(const PanelSource& source, void* panel) {
  pack_interleaved_scalar(source, kTileM, static_cast<float*>(panel));
}

void pack_b(const PanelSource& source, void* panel) {
  pack_interleaved_scalar(source, kTileN, static_cast<float*>(panel));
}

}  // namespace

void pack_interleaved_scalar(const PanelSource& source, int tile, float* panel) {
  if (source.is_bf16) {
    interleave(static_cast<const bf16_t*>(source.data), source, tile, panel);
  } else {
    interleave(static_cast<const float*>(source.data), source, tile, panel);
  }
}

const FloatMicroKernel kScalarMicroKernel = {
    .tile_m = kTileM,
    .tile_n = kTileN,
    .k_step = 1,
    .k_block = 512,
    .packed_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
    .store = store,
    .begin_task = nullptr,
    .end_task = nullptr,
};

}  // namespace octet::cpu
