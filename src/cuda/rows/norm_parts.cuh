// What kernels that normalize whole rows share: the factors of columns, and sums over rows.
#pragma once

#include "backend/ops.h"
#include "cuda/rows/team_rows.cuh"

namespace octet::cuda {

// Threads that rounding up to warps added read one row of teams beyond the last; a row has 64 at
// most, since its factors are in the 64 KB of shared memory that every GPU has.
inline constexpr int kMaxNormTeams = 64;
inline constexpr int kParts = 2 * kMaxNormTeams;

// The factor of a column of a normed row: the product of those that are not null.
struct ColumnVectors {
  const float* weight = nullptr;     // [k]
  const std::byte* scale = nullptr;  // [k] of the rows' type, as 1 + scale
  const std::byte* gate = nullptr;   // [k] of the rows' type, as tanh(gate)

  ColumnVectors() = default;
  explicit ColumnVectors(const RowNorm& how, const ConstTensorView& gates = {})
      : weight(how.weight.as<float>()), scale(how.scale.data), gate(gates.data) {}
  bool is_aligned() const {
    return cuda::is_aligned(weight, 0, 16) && cuda::is_aligned(scale, 0, 16) &&
           cuda::is_aligned(gate, 0, 16);
  }
};

// For eight columns. All loads come first: they are on their way together.
template <class T>
__device__ void column_factors(const ColumnVectors& vectors, int column, float (&factors)[8]) {
  const Chunk<float> weight = load_vector_chunk<float>(vectors.weight, column);
  const Chunk<T> scale = load_vector_chunk<T>(vectors.scale, column);
  const Chunk<T> gate = load_vector_chunk<T>(vectors.gate, column);
  float v[8];
#pragma unroll
  for (float& factor : factors) factor = 1.0f;
  if (vectors.weight != nullptr) unpack_chunk(weight, factors);
  if (vectors.scale != nullptr) {
    unpack_chunk(scale, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) factors[i] *= 1.0f + v[i];
  }
  if (vectors.gate != nullptr) {
    unpack_chunk(gate, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) factors[i] *= tanhf(v[i]);
  }
}

// The factors of all columns, [2 * kChunks][threads of a row] as its threads read them, zeros
// beyond k. All threads of the block share the work, so that it is two rounds of loads, not eight;
// a barrier follows.
template <class T, class P>
__device__ void fill_factors(const ColumnVectors& vectors, const TeamGrid& grid, float4* factors) {
  const int row_threads = grid.teams_per_row * kTeamLanes;
#pragma unroll 1
  for (int item = static_cast<int>(threadIdx.x); item < kChunks * row_threads;
       item += static_cast<int>(blockDim.x)) {
    const int c = item / row_threads, thread = item - c * row_threads;
    const int column = thread / kTeamLanes * kTeamColumns + P::lane_column(thread % kTeamLanes) +
                       P::chunk_column(c);
    float f[8] = {};
    if (column < grid.k) column_factors<T>(vectors, column, f);
    factors[2 * c * row_threads + thread] = make_float4(f[0], f[1], f[2], f[3]);
    factors[(2 * c + 1) * row_threads + thread] = make_float4(f[4], f[5], f[6], f[7]);
  }
}

// Of chunk c, for the thread whose first are at `own`.
__device__ inline void read_factors(const float4* own, int c, int row_threads, float (&f)[8]) {
  const float4 low = own[2 * c * row_threads], high = own[(2 * c + 1) * row_threads];
  f[0] = low.x, f[1] = low.y, f[2] = low.z, f[3] = low.w;
  f[4] = high.x, f[5] = high.y, f[6] = high.z, f[7] = high.w;
}

// The sum over a team's 256 columns of what it has per chunk, column bit by column bit from the
// lowest: the same bits however its lanes share the columns, so that norms do not depend on what
// follows them.
template <bool kRotated>
__device__ float team_sum(const float (&of_chunks)[kChunks]) {
  static_assert(kChunks == 4);
  float s[kChunks];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) s[c] = with_neighbour(of_chunks[c], 1);
  if constexpr (kRotated) {  // bit 3 was in the lane; 4 in the chunk, 5 in the lane, and so on
    const float low = with_neighbour(s[0] + s[1], 2), high = with_neighbour(s[2] + s[3], 2);
    return with_neighbour(low + high, 4);
  } else {  // 3, 4, 5 in the lane
#pragma unroll
    for (int c = 0; c < kChunks; ++c) s[c] = with_neighbour(with_neighbour(s[c], 2), 4);
    return (s[0] + s[1]) + (s[2] + s[3]);
  }
}

// The sum over a row, the same in all of its threads; one barrier. `parts` must not be in use from
// the sum before: callers take turns with two.
template <bool kRotated>
__device__ float row_sum(const float (&of_chunks)[kChunks], float (&parts)[kParts],
                         const Place<kRotated>& place, int teams) {
  const float of_team = team_sum<kRotated>(of_chunks);
  if (place.lane == 0) parts[place.slot * teams + place.team] = of_team;
  __syncthreads();
  float sum = 0;
#pragma unroll 1  // registers are scarce, and these are two or three
  for (int i = place.lane; i < teams; i += kTeamLanes) sum += parts[place.slot * teams + i];
  return with_neighbour(with_neighbour(with_neighbour(sum, 1), 2), 4);
}

template <bool kRotated>
__device__ float row_squares(const float (&v)[8 * kChunks], float (&parts)[kParts],
                             const Place<kRotated>& place, int teams) {
  float squares[kChunks] = {};
#pragma unroll
  for (int i = 0; i < 8 * kChunks; ++i) squares[i / 8] = fmaf(v[i], v[i], squares[i / 8]);
  return row_sum(squares, parts, place, teams);
}

template <class P>
__device__ uint32_t row_max(uint32_t bits, float (&parts)[kParts], const P& place, int teams) {
  bits = team_max(bits);
  if (place.lane == 0) parts[place.slot * teams + place.team] = __uint_as_float(bits);
  __syncthreads();
  bits = 0;
#pragma unroll 1
  for (int i = place.lane; i < teams; i += kTeamLanes) {
    bits = max(bits, __float_as_uint(parts[place.slot * teams + i]));
  }
  return team_max(bits);
}

// What follows a quantized norm, after the smoothing factors: the rotation, the row's scale, and
// the codes. One barrier, as in row_sum().
template <bool kRotated>
__device__ void quantize_normed_row(float (&v)[8 * kChunks], const QuantizedRows& out, int row,
                                    bool valid_row, float (&parts)[kParts],
                                    const Place<kRotated>& place, int teams) {
  if constexpr (kRotated) rotate_team(v, out.digits);
  const uint32_t bits = row_max(lane_amax_bits(v), parts, place, teams);
  const RowScale scale(__fmul_rn(__uint_as_float(bits), out.factor));
  uint32_t words[2 * kChunks];
  quantize_lane<kRotated>(v, scale, out.factor, words);
  if constexpr (kRotated) merge_runs(words, place.lane);
  if (valid_row) {
    store_row(out, place, row, words);
    if (place.column == 0) out.scales[row] = scale.scale();
  }
}

// Rows that a kernel keeps in registers, with at most max_teams * 256 columns.
inline bool takes_rows(const ConstTensorView& x, const ColumnVectors& vectors, int max_teams) {
  return x.shape[1] % 8 == 0 && x.shape[1] <= int64_t{max_teams} * kTeamColumns &&
         x.shape[0] <= kMaxRows && is_aligned(x.data, pitch_of(x), 16) && vectors.is_aligned();
}

inline bool takes_codes(const QTensor& out, const ActivationTransform& transform) {
  const int64_t run = transform.kind == Transform::rotate ? 16 : 8;
  return out.k() % run == 0 && is_aligned(out.values.data, pitch_of(out.values), run) &&
         is_aligned(transform.smooth.data, 0, 16);
}

}  // namespace octet::cuda
