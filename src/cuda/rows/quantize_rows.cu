// Row quantization in one pass over memory: a row stays in registers between the search for its
// largest magnitude and the rounding.
//
// The loads of a block's next rows are on their way while it works on the present ones, so memory
// is never idle at the barrier.
#include "cuda/rows/quantize_any.h"
#include "cuda/rows/row_kernels.h"
#include "cuda/rows/stepwise.cuh"
#include "cuda/rows/team_rows.cuh"

namespace octet::cuda {
namespace {

// Of a block, and resident on a multiprocessor: 80 registers each, or 128.
template <class T>
constexpr int kMaxQuantizeThreads = sizeof(T) == 2 ? 768 : 512;

struct QuantizeArgs {
  TeamGrid grid;
  QuantizedRows out;
  const std::byte* x;   // [rows, k], x_pitch bytes apart
  const float* smooth;  // [k], under Transform::smooth
  int x_pitch;
};

// A lane's part of a row as int8; returns the row's scale. `amax`: the row's largest magnitude, of
// all lanes. The factor of a rotation is left to this function, unless kStepwise.
template <class T, bool kRotated, bool kStepwise>
__device__ RowScale quantize_part(const float (&v)[32], float amax, float factor,
                                  uint32_t (&words)[2 * kChunks]) {
  if constexpr (kStepwise) {
    const StepwiseScale<T> scale(amax);
#pragma unroll
    for (int i = 0; i < 2 * kChunks; ++i) {
      words[i] = scale.finite() ? stepwise_word<T>(v + 4 * i, scale) : 0;
    }
    return scale;
  } else {
    const RowScale scale(__fmul_rn(amax, factor));
    quantize_lane<kRotated>(v, scale, factor, words);
    return scale;
  }
}

template <class T, Transform kTransform, bool kStepwise>
__global__ void __launch_bounds__(kMaxQuantizeThreads<T>)
    quantize_rows_kernel(const QuantizeArgs args) {
  constexpr bool kRotated = kTransform == Transform::rotate;
  // Three sets in turn: while this step's is filled the next one's is cleared, and threads behind
  // may still read the one before.
  __shared__ uint32_t row_amax[3][kMaxStepRows];
  using P = Place<kRotated>;
  const P place(args.grid);
  const int stride = static_cast<int>(gridDim.x) * args.grid.rows_per_step;
  int first_row = static_cast<int>(blockIdx.x) * args.grid.rows_per_step;

  const std::byte* x = args.x + static_cast<int64_t>(first_row + place.row) * args.x_pitch +
                       place.column * static_cast<int>(sizeof(T));
  Chunk<T> chunks[kChunks];
  load_row<T, P>(x, first_row + place.row < args.grid.rows ? place.left : 0, chunks);
  if (threadIdx.x < kMaxStepRows) row_amax[0][threadIdx.x] = 0;
  __syncthreads();
  for (int turn = 0; first_row < args.grid.rows; first_row += stride) {
    const int row = first_row + place.row;
    float v[8 * kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) unpack_chunk(chunks[c], v + 8 * c);
    x += static_cast<int64_t>(stride) * args.x_pitch;
    load_row<T, P>(x, row + stride < args.grid.rows ? place.left : 0, chunks);

    if constexpr (kTransform == Transform::smooth) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const int offset = place.chunk_column(c);
        multiply_chunk(args.smooth + place.column + offset, offset < place.left, v + 8 * c);
      }
    }
    if constexpr (kRotated) rotate_team(v, args.out.digits);
    if constexpr (kStepwise && kTransform != Transform::none) {
#pragma unroll
      for (int i = 0; i < 32; i += 2) {
        if constexpr (kRotated) {
          v[i] = __fmul_rn(v[i], args.out.factor);
          v[i + 1] = __fmul_rn(v[i + 1], args.out.factor);
        }
        round_pair<T>(v + i);
      }
    }

    const uint32_t team_bits = team_max(lane_amax_bits(v));
    if (place.lane == 0) atomicMax(&row_amax[turn][place.slot], team_bits);
    const int next_turn = turn == 2 ? 0 : turn + 1;
    if (threadIdx.x < kMaxStepRows) row_amax[next_turn][threadIdx.x] = 0;
    __syncthreads();
    const uint32_t bits = row_amax[turn][place.slot];
    turn = next_turn;

    uint32_t words[2 * kChunks];
    const RowScale scale =
        quantize_part<T, kRotated, kStepwise>(v, __uint_as_float(bits), args.out.factor, words);
    if constexpr (kRotated) merge_runs(words, place.lane);
    if (row < args.grid.rows) {
      store_row(args.out, place, row, words);
      if (place.column == 0) args.out.scales[row] = scale.scale();
    }
  }
}

template <class T, bool kStepwise>
void launch_typed(const QuantizeArgs& args, Transform transform, int multiprocessors,
                  CUstream_st* stream) {
  const int threads = args.grid.threads();
  const unsigned blocks = args.grid.blocks(multiprocessors, kMaxQuantizeThreads<T>);
  switch (transform) {
    case Transform::none:
      quantize_rows_kernel<T, Transform::none, kStepwise><<<blocks, threads, 0, stream>>>(args);
      break;
    case Transform::smooth:
      quantize_rows_kernel<T, Transform::smooth, kStepwise><<<blocks, threads, 0, stream>>>(args);
      break;
    case Transform::rotate:
      quantize_rows_kernel<T, Transform::rotate, kStepwise><<<blocks, threads, 0, stream>>>(args);
      break;
  }
}

}  // namespace

void launch_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                          const QTensor& out, int multiprocessors, CUstream_st* stream) {
  const int64_t rows = x.shape[0];
  const int64_t k = x.shape[1];
  if (rows == 0) return;
  const int64_t max_k =
      (x.dtype == DType::f32 ? kMaxQuantizeThreads<float> : kMaxQuantizeThreads<bf16_t>) /
      kTeamLanes * kTeamColumns;
  const bool smooth = transform.kind == Transform::smooth;
  const int64_t run = transform.kind == Transform::rotate ? 16 : 8;
  if (k == 0 || k % run != 0 || k > max_k || rows > kMaxRows || pitch_of(x) > INT32_MAX ||
      !is_aligned(x.data, pitch_of(x), 16) ||
      !is_aligned(out.values.data, pitch_of(out.values), run) ||
      (smooth && !is_aligned(transform.smooth.data, 0, 16))) {
    launch_quantize_any(x, nullptr, transform, out, multiprocessors, stream);
    return;
  }

  const QuantizeArgs args{.grid = TeamGrid(rows, k, multiprocessors),
                          .out = QuantizedRows(out, transform),
                          .x = x.data,
                          .smooth = smooth ? transform.smooth.as<float>() : nullptr,
                          .x_pitch = static_cast<int>(pitch_of(x))};
  const auto of_type = [&]<class T>(T) {
    if constexpr (sizeof(T) == 2) {
      if (transform.stepwise) {
        launch_typed<T, true>(args, transform.kind, multiprocessors, stream);
        return;
      }
    }
    launch_typed<T, false>(args, transform.kind, multiprocessors, stream);
  };
  switch (x.dtype) {
    case DType::bf16: of_type(bf16_t{}); break;
    case DType::f16: of_type(f16_t{}); break;
    default: of_type(float{}); break;
  }
}

}  // namespace octet::cuda
