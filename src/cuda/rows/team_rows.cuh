// Whole rows in the registers of a block, between the one load of their values and the one store.
//
// A team of 8 lanes holds 256 columns, a block `rows_per_step` whole rows, and blocks stay on their
// multiprocessor and stride over the rows. Quantization and norms of rows are built on this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/checked.h"
#include "cuda/rows/rotation.cuh"
#include "cuda/rows/row_ptx.cuh"
#include "cuda/rows/row_scale.cuh"
#include "cuda/rows/values.cuh"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

namespace octet::cuda {

inline constexpr int kTeamLanes = 8;
inline constexpr int kTeamColumns = 256;
inline constexpr int kChunks = 4;         // runs of 8 columns that a lane holds
inline constexpr int kStepThreads = 320;  // a block takes as many rows as fill this many
inline constexpr int kMaxStepRows = kStepThreads / kTeamLanes;
inline constexpr int kNoRow = 1 << 30;    // larger than any row
inline constexpr int kMaxRows = 1 << 28;  // so that sums of rows do not overflow
inline constexpr float kTinyAmax = 0x1p-60f;

// How rows are distributed over teams and blocks.
struct TeamGrid {
  int rows;
  int k;
  int teams_per_row;  // ceil(k / 256)
  int rows_per_step;

  // Several short rows share a block to fill its warps, unless multiprocessors would be idle then.
  TeamGrid(int64_t row_count, int64_t columns, int multiprocessors)
      : rows(static_cast<int>(row_count)),
        k(static_cast<int>(columns)),
        teams_per_row(static_cast<int>(ceil_div(columns, kTeamColumns))) {
    const int64_t fitting = kStepThreads / (teams_per_row * kTeamLanes);
    const int64_t spread = ceil_div(row_count, 2 * static_cast<int64_t>(multiprocessors));
    rows_per_step = static_cast<int>(std::max<int64_t>(1, std::min(fitting, spread)));
  }

  int threads() const {
    return static_cast<int>(round_up(rows_per_step * teams_per_row * kTeamLanes, 32));
  }
  // As many as run at once if `resident` threads fit a multiprocessor.
  unsigned blocks(int multiprocessors, int resident) const {
    const int64_t at_once = static_cast<int64_t>(multiprocessors) * (resident / threads());
    return static_cast<unsigned>(std::min(ceil_div(rows, rows_per_step), at_once));
  }
};

// Where quantized rows go, and their rotation.
struct QuantizedRows {
  int8_t* q = nullptr;      // [rows, k], pitch bytes apart
  float* scales = nullptr;  // [rows]
  int pitch = 0;
  int k = 0;
  int digits = 0;       // of the rotation, 0 without
  float factor = 1.0f;  // of the rotation, 1 without

  QuantizedRows() = default;
  QuantizedRows(const QTensor& out, const ActivationTransform& transform)
      : q(out.values.as<int8_t>()),
        scales(out.scales.as<float>()),
        pitch(out.rows() > 1 ? static_cast<int>(out.values.row_stride()) : 0),
        k(static_cast<int>(out.k())) {
    if (transform.kind != Transform::rotate) return;
    for (int64_t span = 1; span < transform.group; span *= 4) {
      ++digits;
      factor *= 0.5f;
    }
  }
};

// Bytes between rows. The stride of a single row is meaningless and may be anything.
inline int64_t pitch_of(const ConstTensorView& view) {
  return view.shape[0] > 1 ? view.row_stride() * (bits_of(view.dtype) / 8) : 0;
}

inline bool is_aligned(const void* data, int64_t pitch, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0 &&
         pitch % bytes == 0 && pitch <= std::numeric_limits<int>::max();
}

__device__ inline void multiply_chunk(const float* smooth, bool valid, float* v) {
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    float4 factors = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (valid) factors = __ldg(reinterpret_cast<const float4*>(smooth + i));
    v[i + 0] = __fmul_rn(v[i + 0], factors.x);
    v[i + 1] = __fmul_rn(v[i + 1], factors.y);
    v[i + 2] = __fmul_rn(v[i + 2], factors.z);
    v[i + 3] = __fmul_rn(v[i + 3], factors.w);
  }
}

// Bits of the largest magnitude of the lane; see max_magnitude for NaN.
__device__ inline uint32_t lane_amax_bits(const float (&v)[32]) {
  float amax[4] = {};
#pragma unroll
  for (int i = 0; i < 32; ++i) amax[i % 4] = max_magnitude(amax[i % 4], v[i]);
  return __float_as_uint(
      max_magnitude(max_magnitude(amax[0], amax[1]), max_magnitude(amax[2], amax[3])));
}

// The sum of a lane's value and that of the lane whose number differs in the bits of `mask`; the
// same bits in both.
__device__ inline float with_neighbour(float value, int mask) {
  return value + __shfl_xor_sync(kFullWarp, value, mask);
}

__device__ inline uint32_t team_max(uint32_t bits) {
#pragma unroll
  for (int mask = 1; mask < kTeamLanes; mask *= 2) {
    bits = max(bits, __shfl_xor_sync(kFullWarp, bits, mask));
  }
  return bits;
}

// Where a thread's values are: the same columns in every step.
template <bool kRotated>
struct Place {
  int lane;    // in the team
  int team;    // in the row
  int row;     // within the step, kNoRow for what rounding the block up to warps added
  int slot;    // the same as an index that is always valid
  int column;  // of value 0 of chunk 0
  int left;    // columns from there to k; chunks beyond are zeros and are not stored

  __device__ explicit Place(const TeamGrid& grid) {
    const int block_team = static_cast<int>(threadIdx.x) / kTeamLanes;
    lane = static_cast<int>(threadIdx.x) % kTeamLanes;
    slot = block_team / grid.teams_per_row;
    team = block_team - slot * grid.teams_per_row;
    row = slot < grid.rows_per_step ? slot : kNoRow;
    column = team * kTeamColumns + lane_column(lane);
    left = grid.k - column;
  }
  static __device__ int lane_column(int lane_of_team) {
    return kRotated ? rotation_lane_column(lane_of_team) : 8 * lane_of_team;
  }
  static __device__ constexpr int chunk_column(int chunk) {
    return kRotated ? rotation_chunk_column(chunk) : 64 * chunk;
  }
};

// `at`: the thread's first value in a row; `left`: as in Place, or 0 where there is no such row.
template <class T, class P>
__device__ void load_row(const std::byte* at, int left, Chunk<T> (&chunks)[kChunks]) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int offset = P::chunk_column(c);
    chunks[c] = load_chunk<T>(at + offset * static_cast<int>(sizeof(T)), offset < left);
  }
}

// Plain order: a run of 8 bytes per chunk, 64 contiguous bytes per team.
__device__ inline void store_row(const QuantizedRows& out, const Place<false>& place, int row,
                                 const uint32_t (&words)[8]) {
  int8_t* at = out.q + static_cast<int64_t>(row) * out.pitch + place.column;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int offset = Place<false>::chunk_column(c);
    if (offset < place.left) {
      store_vector(at + offset, make_uint2(words[2 * c], words[2 * c + 1]));
    }
  }
}

// Rotated order, after merge_runs: two runs of 16 bytes.
__device__ inline void store_row(const QuantizedRows& out, const Place<true>& place, int row,
                                 const uint32_t (&words)[8]) {
  const int team = out.digits == 5 ? team_after_across(place.team) : place.team;
  const int column = team * kTeamColumns + rotation_store_column(place.lane);
  int8_t* at = out.q + static_cast<int64_t>(row) * out.pitch + column;
#pragma unroll
  for (int run = 0; run < 2; ++run) {
    if (column + 64 * run < out.k) {
      store_vector(at + 64 * run, make_uint4(words[4 * run], words[4 * run + 1], words[4 * run + 2],
                                             words[4 * run + 3]));
    }
  }
}

// The factor of the rotation, a power of two, is left to the row's largest magnitude and inverse:
// the former comes out the same either way, and so do the products, except where a value times the
// factor is subnormal. That moves a quotient only if the whole row is tiny.
template <bool kRotated>
__device__ void quantize_lane(const float (&v)[32], const RowScale& scale, float factor,
                              uint32_t (&words)[8]) {
  if (!scale.finite()) {
#pragma unroll
    for (int i = 0; i < 8; ++i) words[i] = 0;
  } else if (kRotated && scale.amax < kTinyAmax) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float exact[4] = {__fmul_rn(v[4 * i], factor), __fmul_rn(v[4 * i + 1], factor),
                              __fmul_rn(v[4 * i + 2], factor), __fmul_rn(v[4 * i + 3], factor)};
      words[i] = quantized_word(exact, scale.inverse);
    }
  } else {
    const float inverse = kRotated ? __fmul_rn(scale.inverse, factor) : scale.inverse;
#pragma unroll
    for (int i = 0; i < 8; ++i) words[i] = quantized_word(v + 4 * i, inverse);
  }
}

}  // namespace octet::cuda
