// Converts stored floats to the types that ops take: bound by memory. A thread takes eight
// consecutive columns and walks down the rows.
#include <algorithm>
#include <type_traits>

#include "base/checked.h"
#include "cuda/rows/row_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kConvertThreads = 128;
constexpr int kConvertRun = 8;      // columns of a thread
constexpr int kConvertBlocks = 16;  // blocks of a multiprocessor that hide the memory's latency

struct f8_t {
  uint8_t code;
};

// The magnitude's bits are those of an f16, except for a bias of 7 instead of 15; its one NaN would
// be 480 there.
__device__ inline float f8_to_f32(uint32_t code) {
  const float value = f16_to_f32(static_cast<uint16_t>((code & 0x80) << 8 | (code & 0x7f) << 7));
  return (code & 0x7f) == 0x7f ? __uint_as_float(0x7fc00000) : value * 256.0f;
}

__device__ inline float load_value(const f8_t* from) { return f8_to_f32(from->code); }
__device__ inline float load_value(const f16_t* from) { return f16_to_f32(from->bits); }
__device__ inline float load_value(const bf16_t* from) { return load_one(from); }
__device__ inline float load_value(const float* from) { return load_one(from); }

template <class In>
__device__ inline void load_run(const In* from, float (&v)[kConvertRun]) {
  if constexpr (std::is_same_v<In, f8_t>) {
    const uint2 codes = __ldcs(reinterpret_cast<const uint2*>(from));
#pragma unroll
    for (int i = 0; i < kConvertRun; ++i) {
      v[i] = f8_to_f32((i < 4 ? codes.x : codes.y) >> (8 * (i % 4)) & 0xff);
    }
  } else {
    unpack_chunk(load_chunk<In>(reinterpret_cast<const std::byte*>(from), true), v);
  }
}

template <class In, class Out>
struct ConvertArgs {
  const In* in;
  const float* row_scale;  // [rows] or null
  Out* out;
  int64_t in_stride, out_stride;  // in elements
  int64_t rows, columns;
  bool vectors;  // eight columns are aligned everywhere
};

template <class In, class Out>
__global__ void __launch_bounds__(kConvertThreads, 8)
    convert_kernel(const ConvertArgs<In, Out> args) {
  const int64_t column =
      (static_cast<int64_t>(blockIdx.x) * kConvertThreads + static_cast<int>(threadIdx.x)) *
      kConvertRun;
  if (column >= args.columns) return;
  const int64_t end = min(column + kConvertRun, args.columns);
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    // A factor of 1 changes only the bits of a NaN, which do not count.
    const float scale = args.row_scale == nullptr ? 1.0f : __ldg(args.row_scale + row);
    const In* in = args.in + row * args.in_stride;
    Out* out = args.out + row * args.out_stride;
    if (args.vectors && end - column == kConvertRun) {
      float v[kConvertRun];
      load_run(in + column, v);
#pragma unroll
      for (int i = 0; i < kConvertRun; ++i) v[i] = __fmul_rn(v[i], scale);
      store_eight<Out>(out + column, v);
    } else {
      for (int64_t j = column; j < end; ++j) {
        store_one(out + j, __fmul_rn(load_value(in + j), scale));
      }
    }
  }
}

template <class T>
bool starts_at_vectors(const T* data, int64_t stride) {
  const auto bytes = static_cast<uintptr_t>(stride) * sizeof(T);
  return (reinterpret_cast<uintptr_t>(data) | bytes) %
             std::min<size_t>(16, kConvertRun * sizeof(T)) ==
         0;
}

template <class In, class Out>
void launch_from_to(const ConstTensorView& x, const TensorView& out, const float* row_scale,
                    int multiprocessors, CUstream_st* stream) {
  ConvertArgs<In, Out> args{.in = x.as<In>(),
                            .row_scale = row_scale,
                            .out = out.as<Out>(),
                            .in_stride = x.row_stride(),
                            .out_stride = out.row_stride(),
                            .rows = x.shape[0],
                            .columns = x.shape[1],
                            .vectors = false};
  if (args.rows == 1) args.in_stride = args.out_stride = 0;  // a single row's may be anything
  args.vectors =
      starts_at_vectors(args.in, args.in_stride) && starts_at_vectors(args.out, args.out_stride);
  const int64_t slices = ceil_div(args.columns, kConvertThreads * kConvertRun);
  const int64_t resident = static_cast<int64_t>(multiprocessors) * kConvertBlocks;
  const int64_t bands =
      std::clamp<int64_t>(args.rows, 1, std::clamp<int64_t>(ceil_div(resident, slices), 1, 65535));
  const dim3 grid(static_cast<unsigned>(slices), static_cast<unsigned>(bands));
  convert_kernel<<<grid, kConvertThreads, 0, stream>>>(args);
}

template <class In>
void launch_from(const ConstTensorView& x, const TensorView& out, const float* row_scale,
                 int multiprocessors, CUstream_st* stream) {
  const auto launch =
      out.dtype == DType::bf16 ? launch_from_to<In, bf16_t> : launch_from_to<In, float>;
  launch(x, out, row_scale, multiprocessors, stream);
}

}  // namespace

void launch_convert(const ConstTensorView& x, const TensorView& out, const float* row_scale,
                    int multiprocessors, CUstream_st* stream) {
  switch (x.dtype) {
    case DType::f8_e4m3: launch_from<f8_t>(x, out, row_scale, multiprocessors, stream); break;
    case DType::f16: launch_from<f16_t>(x, out, row_scale, multiprocessors, stream); break;
    case DType::bf16: launch_from<bf16_t>(x, out, row_scale, multiprocessors, stream); break;
    default: launch_from<float>(x, out, row_scale, multiprocessors, stream); break;
  }
}

}  // namespace octet::cuda
