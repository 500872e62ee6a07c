// h += tanh(gate) * norm(x), and the norm of that h quantized, in one pass: between the end of one
// half of a block and the linear that begins the next, h and x are read once, h and the codes
// written once.
//
// The parts are those of norm_rows.cu, in the same order, so the bits are those of its two kernels:
// h is rounded to its type before the second norm reads it. The next rows of x are on their way to
// registers from the beginning of a step, and those of h to shared memory once the present ones
// have been used: registers have no room for both besides the values.
//
// h bypasses the L2: two GEMMs come before it is read again, and x, which the last one wrote, is
// still there in part, as the codes should be for the next. (A step of 1024 px, without pause:
// 150.7 ms against 151.0 and 151.5, little more than the noise.)
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/l2_policy.cuh"
#include "cuda/ptx/shared.cuh"
#include "cuda/rows/norm_kernels.h"
#include "cuda/rows/norm_parts.cuh"

namespace octet::cuda {
namespace {

// Resident on a multiprocessor: two blocks with two rows each of 4608 columns.
template <class T>
constexpr int kMaxAddNormThreads = sizeof(T) == 4 ? 384 : 640;
// Shared memory for the factors of both norms, those of smoothing and rows of h: the smallest GPUs
// have 99 KB for a block.
constexpr int kMaxSharedBytes = 96 << 10;

struct AddNormArgs {
  TeamGrid grid;
  QuantizedRows quantized;
  const std::byte* x;      // [rows, k], x_pitch bytes apart
  std::byte* h;            // [rows, k], h_pitch bytes apart
  ColumnVectors of_added;  // with the gate
  ColumnVectors of_next;
  ColumnVectors of_smooth;  // under Transform::smooth
  int x_pitch;
  int h_pitch;
  float inverse_k;
  float added_eps;
  float next_eps;
};

// Sets of factors, each [2 * kChunks][threads of a row] in shared memory.
constexpr int factor_sets(Transform transform) { return transform == Transform::smooth ? 3 : 2; }

// Rows of h on their way: [kChunks][parts of a chunk][threads] of 16 bytes. Each thread copies what
// it reads itself, so no barrier is needed.
template <class T>
class StagedRows {
 public:
  static constexpr int kChunkParts = sizeof(T) / 2;
  static constexpr int kThreadBytes = kChunks * kChunkParts * 16;

  __device__ explicit StagedRows(uint4* memory)
      : at_(memory + threadIdx.x), threads_(static_cast<int>(blockDim.x)) {}
  // Chunk c of the row that comes next, or zeros.
  __device__ void copy(int c, const std::byte* from, bool valid) {
#pragma unroll
    for (int i = 0; i < kChunkParts; ++i) {
      ptx::cp_async_16_or_zeros(valid, ptx::shared_address(part(c, i)), from + 16 * i, policy_);
    }
  }
  // Before the first read of a row.
  __device__ void wait() { ptx::cp_async_wait_all(); }
  __device__ Chunk<T> read(int c) const {
    Chunk<T> chunk;
#pragma unroll
    for (int i = 0; i < kChunkParts; ++i) chunk.part[i] = *part(c, i);
    return chunk;
  }

 private:
  __device__ uint4* part(int c, int i) const { return at_ + (c * kChunkParts + i) * threads_; }

  uint4* at_;
  int threads_;
  uint64_t policy_ = ptx::evict_first_policy();
};

template <class T, Transform kTransform>
__global__ void __launch_bounds__(kMaxAddNormThreads<T>)
    add_norm_rows_kernel(const AddNormArgs args) {
  constexpr bool kRotated = kTransform == Transform::rotate;
  constexpr int kBytes = static_cast<int>(sizeof(T));
  using P = Place<kRotated>;
  extern __shared__ float4 factors[];  // sets of them, then rows of h
  // For the squares of x, those of h and the largest magnitude; of even and of odd steps.
  __shared__ float parts[2][3][kParts];
  const P place(args.grid);
  const int teams = args.grid.teams_per_row, row_threads = teams * kTeamLanes;
  const int factor_set = 2 * kChunks * row_threads;
  StagedRows<T> of_h(reinterpret_cast<uint4*>(factors + factor_sets(kTransform) * factor_set));
  const int own = place.team * kTeamLanes + place.lane;
  const int stride = static_cast<int>(gridDim.x) * args.grid.rows_per_step;
  int first_row = static_cast<int>(blockIdx.x) * args.grid.rows_per_step;
  const auto in_row = [&](auto* matrix, int row, int pitch) {
    return matrix + static_cast<int64_t>(row) * pitch + place.column * kBytes;
  };

  const int first = first_row + place.row, left_first = first < args.grid.rows ? place.left : 0;
  Chunk<T> of_x[kChunks];
  load_row<T, P>(in_row(args.x, first, args.x_pitch), left_first, of_x);
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int offset = P::chunk_column(c);
    of_h.copy(c, in_row(args.h, first, args.h_pitch) + offset * kBytes, offset < left_first);
  }
  fill_factors<T, P>(args.of_added, args.grid, factors);
  fill_factors<T, P>(args.of_next, args.grid, factors + factor_set);
  if constexpr (kTransform == Transform::smooth) {
    fill_factors<T, P>(args.of_smooth, args.grid, factors + 2 * factor_set);
  }
  __syncthreads();
  for (int turn = 0; first_row < args.grid.rows; first_row += stride, turn ^= 1) {
    const int row = first_row + place.row;
    const bool valid_row = row < args.grid.rows;
    const int left = valid_row ? place.left : 0;
    const int left_next = row + stride < args.grid.rows ? place.left : 0;
    float v[8 * kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) unpack_chunk(of_x[c], v + 8 * c);
    load_row<T, P>(in_row(args.x, row + stride, args.x_pitch), left_next, of_x);

    const float x_squares = row_squares(v, parts[turn][0], place, teams);
    const float x_factor = rsqrtf(fmaf(x_squares, args.inverse_k, args.added_eps));
    std::byte* h = in_row(args.h, row, args.h_pitch);
    const std::byte* next_h = in_row(args.h, row + stride, args.h_pitch);
    of_h.wait();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int offset = P::chunk_column(c);
      float f[8], base[8];
      read_factors(factors + own, c, row_threads, f);
      unpack_chunk(of_h.read(c), base);
      of_h.copy(c, next_h + offset * kBytes, offset < left_next);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[8 * c + i] = fmaf(v[8 * c + i] * x_factor, f[i], base[i]);
      const Chunk<T> rounded = pack_chunk<T>(v + 8 * c);
      if (offset < left) store_streamed_chunk(h + offset * kBytes, rounded);
      unpack_chunk(rounded, v + 8 * c);
    }

    const float h_squares = row_squares(v, parts[turn][1], place, teams);
    const float h_factor = rsqrtf(fmaf(h_squares, args.inverse_k, args.next_eps));
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      float f[8];
      read_factors(factors + factor_set + own, c, row_threads, f);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[8 * c + i] = v[8 * c + i] * h_factor * f[i];
      if constexpr (kTransform == Transform::smooth) {
        read_factors(factors + 2 * factor_set + own, c, row_threads, f);
#pragma unroll
        for (int i = 0; i < 8; ++i) v[8 * c + i] *= f[i];
      }
    }
    quantize_normed_row(v, args.quantized, row, valid_row, parts[turn][2], place, teams);
  }
}

template <class T>
int shared_bytes(const TeamGrid& grid, Transform transform) {
  return factor_sets(transform) * grid.teams_per_row * kTeamColumns *
             static_cast<int>(sizeof(float)) +
         grid.threads() * StagedRows<T>::kThreadBytes;
}

template <class T, Transform kTransform>
void launch_fused(const AddNormArgs& args, int multiprocessors, CUstream_st* stream) {
  const auto kernel = add_norm_rows_kernel<T, kTransform>;
  const int bytes = shared_bytes<T>(args.grid, kTransform);
  // More than 48 KB, including the kernel's own, has to be requested.
  if (bytes > (40 << 10)) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }
  kernel<<<args.grid.blocks(multiprocessors, kMaxAddNormThreads<T>), args.grid.threads(), bytes,
           stream>>>(args);
}

template <class T>
void launch_fused_typed(const AddNormArgs& args, Transform transform, int multiprocessors,
                        CUstream_st* stream) {
  switch (transform) {
    case Transform::none: launch_fused<T, Transform::none>(args, multiprocessors, stream); break;
    case Transform::smooth:
      launch_fused<T, Transform::smooth>(args, multiprocessors, stream);
      break;
    case Transform::rotate:
      launch_fused<T, Transform::rotate>(args, multiprocessors, stream);
      break;
  }
}

}  // namespace

void launch_add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x,
                                    const RowNorm& how, const ConstTensorView& gate,
                                    const RowNorm& next, const ActivationTransform& transform,
                                    const QTensor& out, int multiprocessors, CUstream_st* stream) {
  const ColumnVectors of_added(how, gate), of_next(next);
  const bool narrow = x.dtype == DType::bf16;
  const int max_teams =
      (narrow ? kMaxAddNormThreads<bf16_t> : kMaxAddNormThreads<float>) / kTeamLanes;
  const TeamGrid grid(x.shape[0], x.shape[1], multiprocessors);
  // If one pass can take the rows, so can the fast kernels of the two.
  if (how.kind != RowNorm::Kind::rms || next.kind != RowNorm::Kind::rms ||
      !takes_rows(x, of_added, max_teams) || !takes_rows(h, of_next, max_teams) ||
      !takes_codes(out, transform) ||
      (narrow ? shared_bytes<bf16_t> : shared_bytes<float>)(grid, transform.kind) >
          kMaxSharedBytes) {
    launch_add_gated(h, x, how, gate, multiprocessors, stream);
    launch_norm_quantize(h, next, transform, out, multiprocessors, stream);
    return;
  }
  ColumnVectors of_smooth;
  if (transform.kind == Transform::smooth) of_smooth.weight = transform.smooth.as<float>();
  const AddNormArgs args{.grid = grid,
                         .quantized = QuantizedRows(out, transform),
                         .x = x.data,
                         .h = h.data,
                         .of_added = of_added,
                         .of_next = of_next,
                         .of_smooth = of_smooth,
                         .x_pitch = static_cast<int>(pitch_of(x)),
                         .h_pitch = static_cast<int>(pitch_of(h)),
                         .inverse_k = 1.0f / static_cast<float>(x.shape[1]),
                         .added_eps = how.eps,
                         .next_eps = next.eps};
  const auto launch = narrow ? launch_fused_typed<bf16_t> : launch_fused_typed<float>;
  launch(args, transform.kind, multiprocessors, stream);
}

}  // namespace octet::cuda
