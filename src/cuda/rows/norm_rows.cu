// Norms of rows in one pass over memory: a row stays in registers from its load, through its
// moments, until it is rounded, added to another matrix, or quantized.
//
// Everything that the norm multiplies a column by (weight, 1 + scale, tanh(gate)) is one factor,
// computed once per block and kept in shared memory. The transform before quantization is applied
// to its result, so that F32 rows get the bits of quantize_rows() after norm(). As in
// quantize_rows.cu, the next rows are on their way while a block works on the present ones.
#include "cuda/rows/norm_kernels.h"
#include "cuda/rows/norm_parts.cuh"
#include "cuda/rows/quantize_any.h"

namespace octet::cuda {
namespace {

enum class Finish { store, add, quantize, smooth_and_quantize, rotate_and_quantize };

// Resident on a multiprocessor, which bounds the registers: the values, the next rows and, under
// Finish::add, the matrix added to.
template <class T, Finish kFinish>
constexpr int kMaxNormThreads = [] {
  if (sizeof(T) == 4) return kFinish == Finish::add ? 384 : 512;
  return kFinish == Finish::smooth_and_quantize ? 512 : 640;
}();
template <class T, Finish kFinish>
constexpr int kMaxTeams = std::min(kMaxNormTeams, kMaxNormThreads<T, kFinish> / kTeamLanes);

struct NormArgs {
  TeamGrid grid;
  QuantizedRows quantized;  // under quantizing finishes
  const std::byte* x;       // [rows, k], x_pitch bytes apart
  std::byte* out;           // [rows, k], out_pitch bytes apart, under the others
  ColumnVectors vectors;    // with a gate under Finish::add
  const float* smooth;      // [k], under Finish::smooth_and_quantize
  int x_pitch;
  int out_pitch;
  float inverse_k;
  float eps;
  bool layer;
};

template <class T, Finish kFinish>
__global__ void __launch_bounds__(kMaxNormThreads<T, kFinish>)
    norm_rows_kernel(const NormArgs args) {
  constexpr bool kRotated = kFinish == Finish::rotate_and_quantize;
  constexpr bool kQuantized = kFinish != Finish::store && kFinish != Finish::add;
  using P = Place<kRotated>;
  extern __shared__ float4 factors[];  // [2 * kChunks][threads of a row]
  // For the mean, the squares and the largest magnitude; of even and of odd steps.
  __shared__ float parts[2][3][kParts];
  const P place(args.grid);
  const int teams = args.grid.teams_per_row, row_threads = teams * kTeamLanes;
  const float4* own_factors = factors + place.team * kTeamLanes + place.lane;
  const int stride = static_cast<int>(gridDim.x) * args.grid.rows_per_step;
  int first_row = static_cast<int>(blockIdx.x) * args.grid.rows_per_step;
  const int column_bytes = place.column * static_cast<int>(sizeof(T));

  const auto x = [&](int row) {
    return args.x + static_cast<int64_t>(row) * args.x_pitch + column_bytes;
  };
  Chunk<T> chunks[kChunks];
  load_row<T, P>(x(first_row + place.row), first_row + place.row < args.grid.rows ? place.left : 0,
                 chunks);
  fill_factors<T, P>(args.vectors, args.grid, factors);
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
    load_row<T, P>(x(first_row + stride + place.row),
                   row + stride < args.grid.rows ? place.left : 0, chunks);

    // With the other matrix in registers, too, there is no room for the mean; gated norms are rms.
    if (kFinish != Finish::add && args.layer) {
      float sums[kChunks] = {};
#pragma unroll
      for (int i = 0; i < 8 * kChunks; ++i) sums[i / 8] += v[i];
      const float sum = row_sum(sums, parts[turn][0], place, teams);
      const float mean = sum * args.inverse_k;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (P::chunk_column(c) < place.left) {  // the rest must stay zero
#pragma unroll
          for (int i = 0; i < 8; ++i) v[8 * c + i] -= mean;
        }
      }
    }
    const float total = row_squares(v, parts[turn][1], place, teams);
    const float factor = rsqrtf(fmaf(total, args.inverse_k, args.eps));

#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      float f[8];
      read_factors(own_factors, c, row_threads, f);
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
      quantize_normed_row(v, args.quantized, row, valid_row, parts[turn][2], place, teams);
    }
  }
}

template <class T, Finish kFinish>
void launch_fast(const NormArgs& args, int multiprocessors, CUstream_st* stream) {
  const auto kernel = norm_rows_kernel<T, kFinish>;
  const int shared_bytes = args.grid.teams_per_row * kTeamColumns * static_cast<int>(sizeof(float));
  // More than 48 KB, including the kernel's own, has to be requested.
  if (shared_bytes > (40 << 10)) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  }
  kernel<<<args.grid.blocks(multiprocessors, kMaxNormThreads<T, kFinish>), args.grid.threads(),
           shared_bytes, stream>>>(args);
}

NormArgs norm_args(const ConstTensorView& x, const RowNorm& how, int multiprocessors) {
  return {.grid = TeamGrid(x.shape[0], x.shape[1], multiprocessors),
          .quantized = {},
          .x = x.data,
          .out = nullptr,
          .vectors = ColumnVectors(how),
          .smooth = nullptr,
          .x_pitch = static_cast<int>(pitch_of(x)),
          .out_pitch = 0,
          .inverse_k = 1.0f / static_cast<float>(x.shape[1]),
          .eps = how.eps,
          .layer = how.kind == RowNorm::Kind::layer};
}

template <class T>
void launch_norm_typed(const ConstTensorView& x, const RowNorm& how, const TensorView& out,
                       int multiprocessors, CUstream_st* stream) {
  if (!takes_rows(x, ColumnVectors(how), kMaxTeams<T, Finish::store>) ||
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
  if (how.kind != RowNorm::Kind::rms ||
      !takes_rows(x, ColumnVectors(how, gate), kMaxTeams<T, Finish::add>) ||
      !is_aligned(h.data, pitch_of(h), 16)) {
    launch_norm_any(x, how, gate, h, multiprocessors, stream);
    return;
  }
  NormArgs args = norm_args(x, how, multiprocessors);
  args.out = h.data;
  args.out_pitch = static_cast<int>(pitch_of(h));
  args.vectors = ColumnVectors(how, gate);
  launch_fast<T, Finish::add>(args, multiprocessors, stream);
}

template <class T>
void launch_quantize_typed(const ConstTensorView& x, const RowNorm& how,
                           const ActivationTransform& transform, const QTensor& out,
                           int multiprocessors, CUstream_st* stream) {
  if (!takes_rows(x, ColumnVectors(how), kMaxTeams<T, Finish::quantize>) ||
      !takes_codes(out, transform)) {
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
