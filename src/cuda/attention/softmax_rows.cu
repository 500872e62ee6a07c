// Softmax: a block takes a row, which it reads once from memory and twice more from L2.
#include <cuda_bf16.h>

#include <cmath>

#include "cuda/attention/softmax_rows.h"

namespace octet::cuda {
namespace {

constexpr int kSoftmaxThreads = 256;
constexpr int kTransposedTile = 32;  // of the transposition

struct SoftmaxArgs {
  const float* scores;
  void* weights;
  int64_t score_stride, weight_stride;
  int64_t keys, columns;  // of scores, of weights
  int64_t first_visible;
  float scale;
};

__device__ void store(float* to, float value) { *to = value; }
__device__ void store(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

// Over all threads, returned to all threads.
template <class Combine>
__device__ float reduce(float value, Combine combine) {
  __shared__ float of_warp[kSoftmaxThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(~0u, value, distance));
  }
  __syncthreads();  // the last reduction has been read
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < kSoftmaxThreads / 32; ++warp) value = combine(value, of_warp[warp]);
  return value;
}

// NaN is never the maximum, but makes the sum, and with it the whole row, NaN.
template <class T>
__global__ void __launch_bounds__(kSoftmaxThreads) softmax_rows(const SoftmaxArgs args) {
  const int64_t row = blockIdx.x;
  const float* scores = args.scores + row * args.score_stride;
  T* weights = static_cast<T*>(args.weights) + row * args.weight_stride;
  const int64_t visible =
      args.first_visible > 0 ? min(args.keys, args.first_visible + row) : args.keys;
  float largest = -INFINITY;
  for (int64_t i = threadIdx.x; i < visible; i += kSoftmaxThreads)
    largest = fmaxf(largest, scores[i]);
  largest = reduce(largest, [](float a, float b) { return fmaxf(a, b); });
  const auto weight = [&](int64_t i) { return expf((scores[i] - largest) * args.scale); };
  float total = 0;
  for (int64_t i = threadIdx.x; i < visible; i += kSoftmaxThreads) total += weight(i);
  total = reduce(total, [](float a, float b) { return a + b; });
  for (int64_t i = threadIdx.x; i < args.columns; i += kSoftmaxThreads) {
    store(weights + i, i < visible ? weight(i) / total : 0.0f);
  }
}

template <class T>
__global__ void transpose(const T* x, int64_t x_stride, int64_t rows, int64_t columns, T* out,
                          int64_t out_stride, int64_t out_columns) {
  __shared__ T tile[kTransposedTile][kTransposedTile + 1];
  const int64_t row = int64_t{blockIdx.x} * kTransposedTile,
                column = int64_t{blockIdx.y} * kTransposedTile;
  const int x_at = static_cast<int>(threadIdx.x);
  for (int y = static_cast<int>(threadIdx.y); y < kTransposedTile;
       y += static_cast<int>(blockDim.y)) {
    const bool inside = row + y < rows && column + x_at < columns;
    tile[y][x_at] = inside ? x[(row + y) * x_stride + column + x_at] : T(0);
  }
  __syncthreads();
  for (int y = static_cast<int>(threadIdx.y); y < kTransposedTile;
       y += static_cast<int>(blockDim.y)) {
    if (column + y < columns && row + x_at < out_columns) {
      out[(column + y) * out_stride + row + x_at] = tile[x_at][y];
    }
  }
}

template <class T>
void launch_transpose_of(const ConstTensorView& x, const TensorView& out, CUstream_st* stream) {
  const dim3 grid(static_cast<unsigned>((out.shape[1] + kTransposedTile - 1) / kTransposedTile),
                  static_cast<unsigned>((out.shape[0] + kTransposedTile - 1) / kTransposedTile));
  transpose<<<grid, dim3(kTransposedTile, 8), 0, stream>>>(x.as<T>(), x.row_stride(), x.shape[0],
                                                           x.shape[1], out.as<T>(),
                                                           out.row_stride(), out.shape[1]);
}

}  // namespace

void launch_softmax_rows(const ConstTensorView& scores, float scale, int64_t first_visible,
                         const TensorView& weights, CUstream_st* stream) {
  const SoftmaxArgs args{
      scores.as<float>(), weights.data,     scores.row_stride(), weights.row_stride(),
      scores.shape[1],    weights.shape[1], first_visible,       scale};
  const auto rows = static_cast<unsigned>(scores.shape[0]);
  if (weights.dtype == DType::bf16) {
    softmax_rows<__nv_bfloat16><<<rows, kSoftmaxThreads, 0, stream>>>(args);
  } else {
    softmax_rows<float><<<rows, kSoftmaxThreads, 0, stream>>>(args);
  }
}

void launch_transpose(const ConstTensorView& x, const TensorView& out, CUstream_st* stream) {
  if (x.dtype == DType::bf16) {
    launch_transpose_of<uint16_t>(x, out, stream);
  } else {
    launch_transpose_of<uint32_t>(x, out, stream);
  }
}

}  // namespace octet::cuda
