// Row quantization in one pass over memory: a row stays in registers between the search for its
// largest magnitude and the rounding.
//
// A team of 8 lanes holds 256 columns, a block `rows_per_step` whole rows, and blocks stay on their
// multiprocessor and stride over the rows. The loads of a block's next rows are on their way while
// it works on the present ones, so memory is never idle at the barrier.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "cuda/rows/quantize_any.h"
#include "cuda/rows/rotation.cuh"
#include "cuda/rows/row_kernels.h"
#include "cuda/rows/row_ptx.cuh"
#include "cuda/rows/row_scale.cuh"

namespace octet::cuda {
namespace {

constexpr int kTeamLanes = 8;
constexpr int kTeamColumns = 256;
constexpr int kChunks = 4;         // runs of 8 columns that a lane holds
constexpr int kStepThreads = 320;  // a block takes as many rows as fill this many
constexpr int kMaxStepRows = kStepThreads / kTeamLanes;
constexpr int kNoRow = 1 << 30;    // larger than any row
constexpr int kMaxRows = 1 << 28;  // so that sums of rows do not overflow
constexpr float kTinyAmax = 0x1p-60f;

// Of a block, and resident on a multiprocessor: 80 registers each, or 128.
template <class T>
constexpr int kMaxThreads = sizeof(T) == 2 ? 768 : 512;

struct QuantizeArgs {
  const std::byte* x;   // [rows, k], x_pitch bytes apart
  const float* smooth;  // [k], under Transform::smooth
  int8_t* q;            // [rows, k], q_pitch bytes apart
  float* scales;        // [rows]
  int x_pitch;
  int q_pitch;
  int rows;
  int k;
  int teams_per_row;  // ceil(k / 256)
  int rows_per_step;
  int digits;    // of the rotation, 0 without
  float factor;  // of the rotation, 1 without
};

// Eight consecutive values as they come from memory.
template <class T>
struct Chunk {
  uint4 part[sizeof(T) / 2];
};

template <class T>
__device__ Chunk<T> load_chunk(const std::byte* at, bool valid) {
  Chunk<T> chunk;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
    // Evict first: the row is not read again, and q should be in L2 when the GEMM comes.
    chunk.part[i] = valid ? __ldcs(reinterpret_cast<const uint4*>(at) + i) : make_uint4(0, 0, 0, 0);
  }
  return chunk;
}

template <class T>
__device__ void unpack_pair(uint32_t pair, float* v) {
  if constexpr (std::is_same_v<T, bf16_t>) {
    v[0] = __uint_as_float(pair << 16);
    v[1] = __uint_as_float(pair & 0xffff0000u);
  } else {
    v[0] = f16_to_f32(static_cast<uint16_t>(pair));
    v[1] = f16_to_f32(static_cast<uint16_t>(pair >> 16));
  }
}

template <class T>
__device__ void unpack_chunk(const Chunk<T>& chunk, float* v) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
    const uint4 part = chunk.part[i];
    if constexpr (std::is_same_v<T, float>) {
      v[4 * i + 0] = __uint_as_float(part.x);
      v[4 * i + 1] = __uint_as_float(part.y);
      v[4 * i + 2] = __uint_as_float(part.z);
      v[4 * i + 3] = __uint_as_float(part.w);
    } else {
      unpack_pair<T>(part.x, v + 0);
      unpack_pair<T>(part.y, v + 2);
      unpack_pair<T>(part.z, v + 4);
      unpack_pair<T>(part.w, v + 6);
    }
  }
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

  __device__ explicit Place(const QuantizeArgs& args) {
    const int block_team = static_cast<int>(threadIdx.x) / kTeamLanes;
    lane = static_cast<int>(threadIdx.x) % kTeamLanes;
    slot = block_team / args.teams_per_row;
    team = block_team - slot * args.teams_per_row;
    row = slot < args.rows_per_step ? slot : kNoRow;
    column = team * kTeamColumns + (kRotated ? rotation_lane_column(lane) : 8 * lane);
    left = args.k - column;
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
__device__ inline void store_row(const QuantizeArgs& args, const Place<false>& place, int row,
                                 const uint32_t (&words)[8]) {
  int8_t* at = args.q + static_cast<int64_t>(row) * args.q_pitch + place.column;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int offset = Place<false>::chunk_column(c);
    if (offset < place.left) {
      store_vector(at + offset, make_uint2(words[2 * c], words[2 * c + 1]));
    }
  }
}

// Rotated order, after merge_runs: two runs of 16 bytes.
__device__ inline void store_row(const QuantizeArgs& args, const Place<true>& place, int row,
                                 const uint32_t (&words)[8]) {
  const int team = args.digits == 5 ? team_after_across(place.team) : place.team;
  const int column = team * kTeamColumns + rotation_store_column(place.lane);
  int8_t* at = args.q + static_cast<int64_t>(row) * args.q_pitch + column;
#pragma unroll
  for (int run = 0; run < 2; ++run) {
    if (column + 64 * run < args.k) {
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

template <class T, Transform kTransform>
__global__ void __launch_bounds__(kMaxThreads<T>) quantize_rows_kernel(const QuantizeArgs args) {
  constexpr bool kRotated = kTransform == Transform::rotate;
  // Three sets in turn: while this step's is filled the next one's is cleared, and threads behind
  // may still read the one before.
  __shared__ uint32_t row_amax[3][kMaxStepRows];
  using P = Place<kRotated>;
  const P place(args);
  const int stride = static_cast<int>(gridDim.x) * args.rows_per_step;
  int first_row = static_cast<int>(blockIdx.x) * args.rows_per_step;

  const std::byte* x = args.x + static_cast<int64_t>(first_row + place.row) * args.x_pitch +
                       place.column * static_cast<int>(sizeof(T));
  Chunk<T> chunks[kChunks];
  load_row<T, P>(x, first_row + place.row < args.rows ? place.left : 0, chunks);
  if (threadIdx.x < kMaxStepRows) row_amax[0][threadIdx.x] = 0;
  __syncthreads();
  for (int turn = 0; first_row < args.rows; first_row += stride) {
    const int row = first_row + place.row;
    float v[8 * kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) unpack_chunk(chunks[c], v + 8 * c);
    x += static_cast<int64_t>(stride) * args.x_pitch;
    load_row<T, P>(x, row + stride < args.rows ? place.left : 0, chunks);

    if constexpr (kTransform == Transform::smooth) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const int offset = place.chunk_column(c);
        multiply_chunk(args.smooth + place.column + offset, offset < place.left, v + 8 * c);
      }
    }
    if constexpr (kRotated) rotate_team(v, args.digits);

    const uint32_t team_bits = team_max(lane_amax_bits(v));
    if (place.lane == 0) atomicMax(&row_amax[turn][place.slot], team_bits);
    const int next_turn = turn == 2 ? 0 : turn + 1;
    if (threadIdx.x < kMaxStepRows) row_amax[next_turn][threadIdx.x] = 0;
    __syncthreads();
    const uint32_t bits = row_amax[turn][place.slot];
    turn = next_turn;

    const RowScale scale(__fmul_rn(__uint_as_float(bits), args.factor));
    uint32_t words[2 * kChunks];
    quantize_lane<kRotated>(v, scale, args.factor, words);
    if constexpr (kRotated) merge_runs(words, place.lane);
    if (row < args.rows) {
      store_row(args, place, row, words);
      if (place.column == 0) args.scales[row] = scale.scale();
    }
  }
}

template <class T>
void launch_typed(const QuantizeArgs& args, Transform transform, int multiprocessors,
                  CUstream_st* stream) {
  const int threads =
      static_cast<int>(round_up(args.rows_per_step * args.teams_per_row * kTeamLanes, 32));
  const int64_t steps = ceil_div(args.rows, args.rows_per_step);
  const int64_t resident = static_cast<int64_t>(multiprocessors) * (kMaxThreads<T> / threads);
  const auto blocks = static_cast<unsigned>(std::min(steps, resident));
  switch (transform) {
    case Transform::none:
      quantize_rows_kernel<T, Transform::none><<<blocks, threads, 0, stream>>>(args);
      break;
    case Transform::smooth:
      quantize_rows_kernel<T, Transform::smooth><<<blocks, threads, 0, stream>>>(args);
      break;
    case Transform::rotate:
      quantize_rows_kernel<T, Transform::rotate><<<blocks, threads, 0, stream>>>(args);
      break;
  }
}

bool is_aligned(const void* data, int64_t pitch, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0 &&
         pitch % bytes == 0 && pitch <= std::numeric_limits<int>::max();
}

}  // namespace

void launch_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                          const QTensor& out, int multiprocessors, CUstream_st* stream) {
  const int64_t rows = x.shape[0];
  const int64_t k = x.shape[1];
  if (rows == 0) return;
  const int64_t element = x.dtype == DType::f32 ? 4 : 2;
  const int64_t max_k =
      (element == 4 ? kMaxThreads<float> : kMaxThreads<bf16_t>) / kTeamLanes * kTeamColumns;
  // The stride of a single row means nothing, and may be anything.
  const int64_t x_pitch = rows > 1 ? x.row_stride() * element : 0;
  const int64_t q_pitch = rows > 1 ? out.values.row_stride() : 0;
  const bool smooth = transform.kind == Transform::smooth;
  const int64_t run = transform.kind == Transform::rotate ? 16 : 8;
  if (k == 0 || k % run != 0 || k > max_k || rows > kMaxRows || !is_aligned(x.data, x_pitch, 16) ||
      !is_aligned(out.values.data, q_pitch, run) ||
      (smooth && !is_aligned(transform.smooth.data, 0, 16))) {
    launch_quantize_any(x, transform, out, multiprocessors, stream);
    return;
  }

  QuantizeArgs args{};
  args.x = x.data;
  args.smooth = smooth ? transform.smooth.as<float>() : nullptr;
  args.q = out.values.as<int8_t>();
  args.scales = out.scales.as<float>();
  args.x_pitch = static_cast<int>(x_pitch);
  args.q_pitch = static_cast<int>(q_pitch);
  args.rows = static_cast<int>(rows);
  args.k = static_cast<int>(k);
  args.teams_per_row = static_cast<int>(ceil_div(k, kTeamColumns));
  // Several short rows share a block to fill its warps, unless that left multiprocessors idle.
  const int64_t fitting = kStepThreads / (args.teams_per_row * kTeamLanes);
  const int64_t spread = ceil_div(rows, 2 * static_cast<int64_t>(multiprocessors));
  args.rows_per_step = static_cast<int>(std::max<int64_t>(1, std::min(fitting, spread)));
  args.factor = 1.0f;
  if (transform.kind == Transform::rotate) {
    for (int64_t span = 1; span < transform.group; span *= 4) {
      ++args.digits;
      args.factor *= 0.5f;
    }
  }
  switch (x.dtype) {
    case DType::bf16: launch_typed<bf16_t>(args, transform.kind, multiprocessors, stream); break;
    case DType::f16: launch_typed<f16_t>(args, transform.kind, multiprocessors, stream); break;
    default: launch_typed<float>(args, transform.kind, multiprocessors, stream); break;
  }
}

}  // namespace octet::cuda
