// Norms of any rows: a pass for the squares (after one for the mean, if it is subtracted) and a
// pass that writes.
#include <algorithm>

#include "cuda/rows/any_rows.cuh"
#include "cuda/rows/norm_kernels.h"

namespace octet::cuda {
namespace {

struct AnyNormArgs {
  AnyRows x;
  AnyNorm norm;
  const std::byte* gate;  // [k], of x's type, or null
  std::byte* out;         // [rows, k]
  int64_t out_stride;     // in elements
};

__device__ void store_any(std::byte* data, DType dtype, int64_t index, float value) {
  if (dtype == DType::f32) {
    reinterpret_cast<float*>(data)[index] = value;
  } else {
    reinterpret_cast<uint16_t*>(data)[index] = static_cast<uint16_t>(pack_bf16(value, value));
  }
}

__global__ void __launch_bounds__(kAnyThreads) norm_any_kernel(const AnyNormArgs args) {
  const DType dtype = args.x.dtype;
  for (int64_t row = blockIdx.x; row < args.x.rows; row += gridDim.x) {
    const RowMoments moments(args.x, args.norm, row);
    for (int64_t j = threadIdx.x; j < args.x.k; j += kAnyThreads) {
      float value = moments.apply(args.x.at(row, j), args.norm, dtype, j);
      const int64_t at = row * args.out_stride + j;
      if (args.gate != nullptr) {
        value = fmaf(tanhf(load_any(args.gate, dtype, j)), value, load_any(args.out, dtype, at));
      }
      store_any(args.out, dtype, at, value);
    }
  }
}

}  // namespace

void launch_norm_any(const ConstTensorView& x, const RowNorm& how, const ConstTensorView& gate,
                     const TensorView& out, int multiprocessors, CUstream_st* stream) {
  const AnyNormArgs args{.x = AnyRows(x),
                         .norm = AnyNorm(how),
                         .gate = gate.data,
                         .out = out.data,
                         .out_stride = out.row_stride()};
  const int64_t resident = static_cast<int64_t>(multiprocessors) * 4;
  const auto blocks = static_cast<unsigned>(std::min(args.x.rows, resident));
  norm_any_kernel<<<blocks, kAnyThreads, 0, stream>>>(args);
}

}  // namespace octet::cuda
