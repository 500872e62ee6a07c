// Integers to floats by rows: dequantization of int8, and the GEMM epilogue as a pass of its own
// over int32 accumulators. Bound by memory: a thread keeps the factors of its 4 columns in
// registers and walks down the rows, with the loads of several rows in flight.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "cuda/rows/row_kernels.h"
#include "cuda/rows/row_ptx.cuh"

namespace octet::cuda {
namespace {

constexpr int kScaleThreads = 128;
constexpr int kScaleBlocks = 16;  // blocks of a multiprocessor that hide the memory's latency
constexpr int kScaleColumns = 4;  // of a thread
constexpr int kScaleRows = 4;     // of a thread in flight

template <class In, class Out>
struct ScaleArgs {
  const In* in;            // [m, n], in_stride apart
  const float* row_scale;  // [m]
  const float* col_scale;  // [n], for int32
  const float* bias;       // [n] or null, for int32
  Out* out;                // [m, n], out_stride apart
  int64_t in_stride;       // in elements, like out_stride
  int64_t out_stride;
  int64_t m;
  int64_t n;
  bool vectors;  // four columns are one aligned access everywhere
};

__device__ inline void load_four(const int8_t* at, int (&v)[kScaleColumns]) {
  const char4 four = __ldcs(reinterpret_cast<const char4*>(at));
  v[0] = four.x;
  v[1] = four.y;
  v[2] = four.z;
  v[3] = four.w;
}

__device__ inline void load_four(const int32_t* at, int (&v)[kScaleColumns]) {
  const int4 four = __ldcs(reinterpret_cast<const int4*>(at));
  v[0] = four.x;
  v[1] = four.y;
  v[2] = four.z;
  v[3] = four.w;
}

__device__ inline void store_four(float* at, const float (&y)[kScaleColumns]) {
  store_vector(at, make_uint4(__float_as_uint(y[0]), __float_as_uint(y[1]), __float_as_uint(y[2]),
                              __float_as_uint(y[3])));
}
__device__ inline void store_four(bf16_t* at, const float (&y)[kScaleColumns]) {
  store_vector(at, make_uint2(pack_bf16(y[0], y[1]), pack_bf16(y[2], y[3])));
}
__device__ inline void store_four(f16_t* at, const float (&y)[kScaleColumns]) {
  store_vector(at, make_uint2(pack_f16(y[0], y[1]), pack_f16(y[2], y[3])));
}

__device__ inline void store_one(float* at, float y) { *at = y; }
__device__ inline void store_one(bf16_t* at, float y) {
  at->bits = static_cast<uint16_t>(pack_bf16(y, y));
}
__device__ inline void store_one(f16_t* at, float y) {
  at->bits = static_cast<uint16_t>(pack_f16(y, y));
}

// Factors and addends of a thread's columns; none for int8.
template <class In>
struct ColumnFactors {
  float scale[kScaleColumns];
  float bias[kScaleColumns];
  bool has_bias;

  __device__ ColumnFactors(const float* col_scale, const float* col_bias, int64_t column,
                           int count) {
    if constexpr (std::is_same_v<In, int32_t>) {
      has_bias = col_bias != nullptr;
#pragma unroll
      for (int c = 0; c < kScaleColumns; ++c) {
        scale[c] = c < count ? __ldg(col_scale + column + c) : 0.0f;
        bias[c] = c < count && has_bias ? __ldg(col_bias + column + c) : 0.0f;
      }
    }
  }
  // The numeric contract: separate operations, in this order.
  __device__ float apply(int value, float row_scale, int c) const {
    float y = __fmul_rn(__int2float_rn(value), row_scale);
    if constexpr (std::is_same_v<In, int32_t>) {
      y = __fmul_rn(y, scale[c]);
      if (has_bias) y = __fadd_rn(y, bias[c]);  // adding 0 instead would turn -0 into 0
    }
    return y;
  }
};

template <class In, class Out>
__global__ void __launch_bounds__(kScaleThreads) scale_rows_kernel(const ScaleArgs<In, Out> args) {
  const int64_t column =
      (static_cast<int64_t>(blockIdx.x) * kScaleThreads + static_cast<int>(threadIdx.x)) *
      kScaleColumns;
  if (column >= args.n) return;
  const int count = static_cast<int>(min(args.n - column, static_cast<int64_t>(kScaleColumns)));
  const ColumnFactors<In> columns(args.col_scale, args.bias, column, count);

  const int64_t stride = static_cast<int64_t>(gridDim.y) * kScaleRows;
  for (int64_t row = static_cast<int64_t>(blockIdx.y) * kScaleRows; row < args.m; row += stride) {
    int values[kScaleRows][kScaleColumns] = {};
    float row_scale[kScaleRows] = {};
#pragma unroll
    for (int r = 0; r < kScaleRows; ++r) {
      if (row + r >= args.m) continue;
      row_scale[r] = __ldg(args.row_scale + row + r);
      const In* in = args.in + (row + r) * args.in_stride + column;
      if (args.vectors) {
        load_four(in, values[r]);
      } else {
#pragma unroll
        for (int c = 0; c < kScaleColumns; ++c) {
          if (c < count) values[r][c] = in[c];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kScaleRows; ++r) {
      if (row + r >= args.m) continue;
      float y[kScaleColumns];
#pragma unroll
      for (int c = 0; c < kScaleColumns; ++c) y[c] = columns.apply(values[r][c], row_scale[r], c);
      Out* out = args.out + (row + r) * args.out_stride + column;
      if (args.vectors) {
        store_four(out, y);
      } else {
#pragma unroll
        for (int c = 0; c < kScaleColumns; ++c) {
          if (c < count) store_one(out + c, y[c]);
        }
      }
    }
  }
}

template <class T>
bool takes_vectors(const T* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % (kScaleColumns * sizeof(T)) == 0 &&
         stride % kScaleColumns == 0;
}

template <class In, class Out>
void launch_typed(ScaleArgs<In, Out> args, int multiprocessors, CUstream_st* stream) {
  if (args.m <= 1) args.in_stride = args.out_stride = 0;  // a single row's may be anything
  args.vectors = args.n % kScaleColumns == 0 && takes_vectors(args.in, args.in_stride) &&
                 takes_vectors(args.out, args.out_stride);
  const int64_t slices = ceil_div(args.n, kScaleThreads * kScaleColumns);
  const int64_t resident = static_cast<int64_t>(multiprocessors) * kScaleBlocks;
  const int64_t bands = std::clamp<int64_t>(ceil_div(args.m, kScaleRows), 1,
                                            std::clamp<int64_t>(resident / slices, 1, 65535));
  const dim3 grid(static_cast<unsigned>(slices), static_cast<unsigned>(bands));
  scale_rows_kernel<<<grid, kScaleThreads, 0, stream>>>(args);
}

template <class In>
void launch_into(const In* in, int64_t in_stride, const float* row_scale, const float* col_scale,
                 const float* bias, const TensorView& out, int multiprocessors,
                 CUstream_st* stream) {
  if (out.shape[0] == 0 || out.shape[1] == 0) return;
  const auto launch = [&]<class Out>(Out* data) {
    launch_typed(ScaleArgs<In, Out>{in, row_scale, col_scale, bias, data, in_stride,
                                    out.row_stride(), out.shape[0], out.shape[1], false},
                 multiprocessors, stream);
  };
  switch (out.dtype) {
    case DType::bf16: launch(out.as<bf16_t>()); break;
    case DType::f16: launch(out.as<f16_t>()); break;
    default: launch(out.as<float>()); break;
  }
}

}  // namespace

void launch_dequantize_rows(const QTensor& q, const TensorView& out, int multiprocessors,
                            CUstream_st* stream) {
  launch_into<int8_t>(q.values.as<int8_t>(), q.values.row_stride(), q.scales.as<float>(), nullptr,
                      nullptr, out, multiprocessors, stream);
}

void launch_dequantize_accumulators(const int32_t* acc, const float* row_scale,
                                    const float* col_scale, const float* bias,
                                    const TensorView& out, int multiprocessors,
                                    CUstream_st* stream) {
  launch_into<int32_t>(acc, out.shape[1], row_scale, col_scale, bias, out, multiprocessors, stream);
}

}  // namespace octet::cuda
