// A block takes a row in tiles of 4096 columns through shared memory, once for the largest
// magnitude and once to quantize; the second time the row comes from L2. The rotation works on the
// tile: its groups divide the tile's width.
#include <algorithm>

#include "cuda/rows/any_rows.cuh"
#include "cuda/rows/quantize_any.h"
#include "cuda/rows/row_scale.cuh"
#include "cuda/rows/stepwise.cuh"

namespace octet::cuda {
namespace {

constexpr int kAnyTileColumns = 4096;

struct AnyArgs {
  AnyRows x;
  AnyNorm norm;
  const float* smooth;  // [k] or null
  int8_t* q;            // [rows, k]
  float* scales;        // [rows]
  int64_t q_stride;
  int group;  // of the rotation, or 0
};

// How rows are quantized: in f32, or in steps of type T.
struct InF32 {
  using Scale = RowScale;
  static __device__ float rounded(float value) { return value; }
  static __device__ uint32_t byte(float value, const Scale& scale) {
    return quantized_byte(value, scale.inverse);
  }
};
template <class T>
struct InStepsOf {
  using Scale = StepwiseScale<T>;
  static __device__ float rounded(float value) {
    float pair[2] = {value, 0.0f};
    round_pair<T>(pair);
    return pair[0];
  }
  static __device__ uint32_t byte(float value, const Scale& scale) {
    const float pair[2] = {value, 0.0f};
    uint32_t bytes[2];
    stepwise_pair<T>(pair, scale, bytes);
    return bytes[0];
  }
};

// Calls use(column, value) for the thread's share of the transformed row.
template <class Use>
__device__ void for_each_value(const AnyArgs& args, int64_t row, const RowMoments& moments,
                               float* tile, Use use) {
  const float factor = rotation_factor(args.group);
  for (int64_t first = 0; first < args.x.k; first += kAnyTileColumns) {
    const int columns =
        static_cast<int>(min(args.x.k - first, static_cast<int64_t>(kAnyTileColumns)));
    __syncthreads();  // the tile before is still in use
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += kAnyThreads) {
      float value = moments.apply(args.x.at(row, first + i), args.norm, args.x.dtype, first + i);
      if (args.smooth != nullptr) value = __fmul_rn(value, args.smooth[first + i]);
      tile[i] = value;
    }
    if (args.group > 0) rotate_tile(tile, columns, args.group);
    // Without a rotation a thread reads only what it wrote itself.
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += kAnyThreads) {
      use(first + i, __fmul_rn(tile[i], factor));
    }
  }
}

template <class How>
__global__ void __launch_bounds__(kAnyThreads, 2) quantize_any_kernel(const AnyArgs args) {
  __shared__ float tile[kAnyTileColumns];
  __shared__ uint32_t row_amax;
  for (int64_t row = blockIdx.x; row < args.x.rows; row += gridDim.x) {
    const RowMoments moments(args.x, args.norm, row);
    __syncthreads();
    if (threadIdx.x == 0) row_amax = 0;
    float amax = 0.0f;
    for_each_value(args, row, moments, tile,
                   [&](int64_t, float value) { amax = max_magnitude(amax, How::rounded(value)); });
    __syncthreads();
    atomicMax(&row_amax, __float_as_uint(amax));
    __syncthreads();

    const typename How::Scale scale(__uint_as_float(row_amax));
    if (threadIdx.x == 0) args.scales[row] = scale.scale();
    int8_t* q = args.q + row * args.q_stride;
    for_each_value(args, row, moments, tile, [&](int64_t column, float value) {
      const uint32_t byte = scale.finite() ? How::byte(How::rounded(value), scale) : 0;
      q[column] = static_cast<int8_t>(byte & 0xffu);
    });
  }
}

}  // namespace

void launch_quantize_any(const ConstTensorView& x, const RowNorm* norm,
                         const ActivationTransform& transform, const QTensor& out,
                         int multiprocessors, CUstream_st* stream) {
  const AnyArgs args{
      .x = AnyRows(x),
      .norm = norm != nullptr ? AnyNorm(*norm) : AnyNorm(),
      .smooth = transform.kind == Transform::smooth ? transform.smooth.as<float>() : nullptr,
      .q = out.values.as<int8_t>(),
      .scales = out.scales.as<float>(),
      .q_stride = out.values.row_stride(),
      .group = transform.kind == Transform::rotate ? static_cast<int>(transform.group) : 0};
  const int64_t resident = static_cast<int64_t>(multiprocessors) * 4;
  const auto blocks = static_cast<unsigned>(std::min(args.x.rows, resident));
  const bool stepwise = transform.stepwise && norm == nullptr;
  if (stepwise && x.dtype == DType::bf16) {
    quantize_any_kernel<InStepsOf<bf16_t>><<<blocks, kAnyThreads, 0, stream>>>(args);
  } else if (stepwise && x.dtype == DType::f16) {
    quantize_any_kernel<InStepsOf<f16_t>><<<blocks, kAnyThreads, 0, stream>>>(args);
  } else {
    quantize_any_kernel<InF32><<<blocks, kAnyThreads, 0, stream>>>(args);
  }
}

}  // namespace octet::cuda
