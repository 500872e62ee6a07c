// Norms of rows in one pass over memory: a row stays in registers from its load, over its moments,
// to what is made of it: rounded, added to another matrix, or quantized.
//
// All that the norm multiplies a column by (weight, 1 + scale, tanh(gate)) is one factor, computed
// once per block and kept in shared memory. The transform before quantization is applied to its
// result, so that F32 rows get the bits of quantize_rows() after norm(). As in quantize_rows.cu,
// the next rows are on their way while a block works on the present ones.
#include "cuda/rows/norm_kernels.h"
#include "cuda/rows/quantize_any.h"
#include "cuda/rows/team_rows.cuh"

namespace octet::cuda {
namespace {

enum class Finish { store, add, quantize, smooth_and_quantize, rotate_and_quantize };

// Resident on a multiprocessor, which bounds the registers: the values, the next rows and, under
// Finish::add, the matrix added to.
template <class T, Finish kFinish>
constexpr int kMaxThreads = [] {
  if (sizeof(T) == 4) return kFinish == Finish::add ? 384 : 512;
  return kFinish == Finish::smooth_and_quantize ? 512 : 640;
}();
// Of a block, so that factors take no more than the 64 KB that every GPU has.
template <class T, Finish kFinish>
constexpr int kMaxTeams = std::min(64, kMaxThreads<T, kFinish> / kTeamLanes);
// Threads that rounding up to warps added read one row of teams beyond the last.
constexpr int kParts = 2 * 64;

struct NormArgs {
  TeamGrid grid;
  QuantizedRows quantized;  // under quantizing finishes
  const std::byte* x;       // [rows, k], x_pitch bytes apart
  std::byte* out;           // [rows, k], out_pitch bytes apart, under the others
  const float* weight;      // [k] or null, as the next three
  const std::byte* scale;   // of x's type
  const std::byte* gate;    // of x's type, under Finish::add
  const float* smooth;      // under Finish::smooth_and_quantize
  int x_pitch;
  int out_pitch;
  float inverse_k;
  float eps;
  bool layer;
};

// The product of all that is there for eight columns.
template <class T>
__device__ void column_factors(const NormArgs& args, int column, float (&factors)[8]) {
  float v[8];
#pragma unroll
  for (float& factor : factors) factor = 1.0f;
  if (args.weight != nullptr) load_eight<float>(args.weight + column, factors);
  if (args.scale != nullptr) {
    load_eight<T>(args.scale + column * sizeof(T), v);
#pragma unroll
    for (int i = 0; i < 8; ++i) factors[i] *= 1.0f + v[i];
  }
  if (args.gate != nullptr) {
    load_eight<T>(args.gate + column * sizeof(T), v);
#pragma unroll
    for (int i = 0; i < 8; ++i) factors[i] *= tanhf(v[i]);
  }
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
#pragma unroll 1  // registers are short, and these are two or three
  for (int i = place.lane; i < teams; i += kTeamLanes) sum += parts[place.slot * teams + i];
  return with_neighbour(with_neighbour(with_neighbour(sum, 1), 2), 4);
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

template <class T, Finish kFinish>
__global__ void __launch_bounds__(kMaxThreads<T, kFinish>) norm_rows_kernel(const NormArgs args) {
  constexpr bool kRotated = kFinish == Finish::rotate_and_quantize;
  constexpr bool kQuantized = kFinish != Finish::store && kFinish != Finish::add;
  using P = Place<kRotated>;
  extern __shared__ float4 factors[];  // [2 * kChunks][threads of a row]
  // For the mean, the squares and the largest magnitude; of even and of odd steps.
  __shared__ float parts[2][3][kParts];
  const P place(args.grid);
  const int teams = args.grid.teams_per_row, row_threads = teams * kTeamLanes;
  float4* own_factors = factors + place.team * kTeamLanes + place.lane;
  const int stride = static_cast<int>(gridDim.x) * args.grid.rows_per_step;
  int first_row = static_cast<int>(blockIdx.x) * args.grid.rows_per_step;
  const int column_bytes = place.column * static_cast<int>(sizeof(T));

  const std::byte* x =
      args.x + static_cast<int64_t>(first_row + place.row) * args.x_pitch + column_bytes;
  Chunk<T> chunks[kChunks];
  load_row<T, P>(x, first_row + place.row < args.grid.rows ? place.left : 0, chunks);
  if (place.slot == 0) {
#pragma unroll 1
    for (int c = 0; c < kChunks; ++c) {
      const int offset = P::chunk_column(c);
      float f[8] = {};
      if (offset < place.left) column_factors<T>(args, place.column + offset, f);
      own_factors[2 * c * row_threads] = make_float4(f[0], f[1], f[2], f[3]);
      own_factors[(2 * c + 1) * row_threads] = make_float4(f[4], f[5], f[6], f[7]);
    }
  }
  __syncthreads();
  for (int turn = 0; first_row < args.grid.rows; first_row += stride, turn ^= 1) {
    const int row = first_row + place.row;
    const bool valid_row = row < args.grid.rows;
    float v[8 * kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) unpack_chunk(chunks[c], v + 8 * c);
    std::byte* out = args.out + static_cast<int64_t>(row) * args.out_pitch + column_bytes;
    Chunk<T> added_to[kChunks];
    if constexpr (kFinish == Finish::add) {
      load_row<T, P>(out, valid_row ? place.left : 0, added_to);
    }
    x += static_cast<int64_t>(stride) * args.x_pitch;
    load_row<T, P>(x, row + stride < args.grid.rows ? place.left : 0, chunks);

    // With what is added to in registers too there is no room for the mean; gated norms are rms.
    if (kFinish != Finish::add && args.layer) {
      float sums[kChunks] = {};
#pragma unroll
      for (int i = 0; i < 8 * kChunks; ++i) sums[i / 8] += v[i];
      const float sum = row_sum(sums, parts[turn][0], place, teams);
      const float mean = sum * args.inverse_k;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (P::chunk_column(c) < place.left) {  // what lies beyond must stay zero
#pragma unroll
          for (int i = 0; i < 8; ++i) v[8 * c + i] -= mean;
        }
      }
    }
    float squares[kChunks] = {};
#pragma unroll
    for (int i = 0; i < 8 * kChunks; ++i) squares[i / 8] = fmaf(v[i], v[i], squares[i / 8]);
    const float total = row_sum(squares, parts[turn][1], place, teams);
    const float factor = rsqrtf(fmaf(total, args.inverse_k, args.eps));

#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const float4 low = own_factors[2 * c * row_threads];
      const float4 high = own_factors[(2 * c + 1) * row_threads];
      const float f[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      float base[8] = {};
      if constexpr (kFinish == Finish::add) unpack_chunk(added_to[c], base);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float normed = v[8 * c + i] * factor;
        v[8 * c + i] = kFinish == Finish::add ? fmaf(normed, f[i], base[i]) : normed * f[i];
      }
      const int offset = P::chunk_column(c);
      if constexpr (kFinish == Finish::smooth_and_quantize) {
        multiply_chunk(args.smooth + place.column + offset, offset < place.left, v + 8 * c);
      }
      if constexpr (!kQuantized) {
        if (valid_row && offset < place.left) {
          store_eight<T>(out + offset * static_cast<int>(sizeof(T)), v + 8 * c);
        }
      }
    }
    if constexpr (kQuantized) {
      if constexpr (kRotated) rotate_team(v, args.quantized.digits);
      const uint32_t bits = row_max(lane_amax_bits(v), parts[turn][2], place, teams);
      const RowScale scale(__fmul_rn(__uint_as_float(bits), args.quantized.factor));
      uint32_t words[2 * kChunks];
      quantize_lane<kRotated>(v, scale, args.quantized.factor, words);
      if constexpr (kRotated) merge_runs(words, place.lane);
      if (valid_row) {
        store_row(args.quantized, place, row, words);
        if (place.column == 0) args.quantized.scales[row] = scale.scale();
      }
    }
  }
}

template <class T, Finish kFinish>
void launch_fast(const NormArgs& args, int multiprocessors, CUstream_st* stream) {
  const auto kernel = norm_rows_kernel<T, kFinish>;
  const int shared_bytes = args.grid.teams_per_row * kTeamColumns * static_cast<int>(sizeof(float));
  // Beyond 48 KB, with what the kernel has beside it, must be asked for.
  if (shared_bytes > (40 << 10)) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  }
  kernel<<<args.grid.blocks(multiprocessors, kMaxThreads<T, kFinish>), args.grid.threads(),
           shared_bytes, stream>>>(args);
}

NormArgs norm_args(const ConstTensorView& x, const RowNorm& how, int multiprocessors) {
  return {.grid = TeamGrid(x.shape[0], x.shape[1], multiprocessors),
          .quantized = {},
          .x = x.data,
          .out = nullptr,
          .weight = how.weight.as<float>(),
          .scale = how.scale.data,
          .gate = nullptr,
          .smooth = nullptr,
          .x_pitch = static_cast<int>(pitch_of(x)),
          .out_pitch = 0,
          .inverse_k = 1.0f / static_cast<float>(x.shape[1]),
          .eps = how.eps,
          .layer = how.kind == RowNorm::Kind::layer};
}

bool takes_rows(const ConstTensorView& x, const RowNorm& how, int max_teams) {
  return x.shape[1] % 8 == 0 && x.shape[1] <= int64_t{max_teams} * kTeamColumns &&
         x.shape[0] <= kMaxRows && is_aligned(x.data, pitch_of(x), 16) &&
         is_aligned(how.weight.data, 0, 16) && is_aligned(how.scale.data, 0, 16);
}

template <class T>
void launch_norm_typed(const ConstTensorView& x, const RowNorm& how, const TensorView& out,
                       int multiprocessors, CUstream_st* stream) {
  if (!takes_rows(x, how, kMaxTeams<T, Finish::store>) ||
      !is_aligned(out.data, pitch_of(out), 16)) {
    launch_norm_any(x, how, {}, out, multiprocessors, stream);
    return;
  }
  NormArgs args = norm_args(x, how, multiprocessors);
  args.out = out.data;
  args.out_pitch = static_cast<int>(pitch_of(out));
  launch_fast<T, Finish::store>(args, multiprocessors, stream);
}

template <class T>
void launch_add_typed(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                      const ConstTensorView& gate, int multiprocessors, CUstream_st* stream) {
  if (how.kind != RowNorm::Kind::rms || !takes_rows(x, how, kMaxTeams<T, Finish::add>) ||
      !is_aligned(h.data, pitch_of(h), 16) || !is_aligned(gate.data, 0, 16)) {
    launch_norm_any(x, how, gate, h, multiprocessors, stream);
    return;
  }
  NormArgs args = norm_args(x, how, multiprocessors);
  args.out = h.data;
  args.out_pitch = static_cast<int>(pitch_of(h));
  args.gate = gate.data;
  launch_fast<T, Finish::add>(args, multiprocessors, stream);
}

template <class T>
void launch_quantize_typed(const ConstTensorView& x, const RowNorm& how,
                           const ActivationTransform& transform, const QTensor& out,
                           int multiprocessors, CUstream_st* stream) {
  const int64_t run = transform.kind == Transform::rotate ? 16 : 8;
  if (!takes_rows(x, how, kMaxTeams<T, Finish::quantize>) || x.shape[1] % run != 0 ||
      !is_aligned(out.values.data, pitch_of(out.values), run) ||
      !is_aligned(transform.smooth.data, 0, 16)) {
    launch_quantize_any(x, &how, transform, out, multiprocessors, stream);
    return;
  }
  NormArgs args = norm_args(x, how, multiprocessors);
  args.quantized = QuantizedRows(out, transform);
  switch (transform.kind) {
    case Transform::none: launch_fast<T, Finish::quantize>(args, multiprocessors, stream); break;
    case Transform::smooth:
      args.smooth = transform.smooth.as<float>();
      launch_fast<T, Finish::smooth_and_quantize>(args, multiprocessors, stream);
      break;
    case Transform::rotate:
      launch_fast<T, Finish::rotate_and_quantize>(args, multiprocessors, stream);
      break;
  }
}

}  // namespace

void launch_norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out,
                 int multiprocessors, CUstream_st* stream) {
  const auto launch = x.dtype == DType::bf16 ? launch_norm_typed<bf16_t> : launch_norm_typed<float>;
  launch(x, how, out, multiprocessors, stream);
}

void launch_add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                      const ConstTensorView& gate, int multiprocessors, CUstream_st* stream) {
  const auto launch = x.dtype == DType::bf16 ? launch_add_typed<bf16_t> : launch_add_typed<float>;
  launch(h, x, how, gate, multiprocessors, stream);
}

void launch_norm_quantize(const ConstTensorView& x, const RowNorm& how,
                          const ActivationTransform& transform, const QTensor& out,
                          int multiprocessors, CUstream_st* stream) {
  const auto launch =
      x.dtype == DType::bf16 ? launch_quantize_typed<bf16_t> : launch_quantize_typed<float>;
  launch(x, how, transform, out, multiprocessors, stream);
}

}  // namespace octet::cuda
