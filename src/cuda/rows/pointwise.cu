// Ops that compute each value of a matrix from the values at the same place: bound by memory. A
// thread takes eight consecutive columns with one access each, and strides by the whole grid.
#include <algorithm>

#include "backend/exact_silu.h"
#include "base/checked.h"
#include "cuda/rows/model_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kPointwiseThreads = 256;
constexpr int kPointwiseWaves = 32;  // blocks of a multiprocessor, in several waves: a short tail

struct Add {
  static constexpr bool kTwo = true;
  static __device__ float apply(float h, float x) { return h + x; }
};

struct SwiGlu {
  static constexpr bool kTwo = true;
  static __device__ float apply(float gate, float up) { return __fmul_rn(exact_silu(gate), up); }
};

struct Silu {
  static constexpr bool kTwo = false;
  static __device__ float apply(float x, float) { return exact_silu(x); }
};

struct Gelu {
  static constexpr bool kTwo = false;
  // 1 + erf(z) = erfc(-z), which loses no digits where erf is near -1.
  static __device__ float apply(float x, float) {
    return 0.5f * x * erfcf(x * -0.70710678118654752440f);
  }
};

template <class T>
struct PointwiseArgs {
  const T* a;
  const T* b;  // for ops of two
  T* out;
  int64_t a_stride, b_stride, out_stride;  // in elements
  int64_t rows, columns;
  int64_t slices;  // blocks that share the columns of a row
};

// kRun: 8, where every row starts at a multiple of 16 bytes, or 1.
template <class T, class Op, int kRun>
__global__ void __launch_bounds__(kPointwiseThreads, 4)
    pointwise_kernel(const PointwiseArgs<T> args) {
  const int64_t slice = blockIdx.x % args.slices, bands = gridDim.x / args.slices;
  const int64_t first = (slice * kPointwiseThreads + static_cast<int>(threadIdx.x)) * kRun;
  const int64_t step = args.slices * kPointwiseThreads * kRun;
  for (int64_t row = blockIdx.x / args.slices; row < args.rows; row += bands) {
    const T* a = args.a + row * args.a_stride;
    const T* b = args.b + row * args.b_stride;
    T* out = args.out + row * args.out_stride;
    for (int64_t column = first; column < args.columns; column += step) {
      if (kRun == 8 && column + kRun <= args.columns) {
        float x[8], y[8] = {};
        unpack_chunk(load_chunk<T>(reinterpret_cast<const std::byte*>(a + column), true), x);
        if constexpr (Op::kTwo) {
          unpack_chunk(load_chunk<T>(reinterpret_cast<const std::byte*>(b + column), true), y);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = Op::apply(x[i], y[i]);
        store_eight<T>(out + column, x);
      } else {
        const int64_t end = min(column + kRun, args.columns);
        for (int64_t j = column; j < end; ++j) {
          store_one(out + j, Op::apply(load_one(a + j), Op::kTwo ? load_one(b + j) : 0.0f));
        }
      }
    }
  }
}

template <class T>
bool is_aligned(const T* data, int64_t stride) {
  return (reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(stride * sizeof(T))) % 16 == 0;
}

template <class T, class Op>
void launch_typed(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                  int multiprocessors, CUstream_st* stream) {
  PointwiseArgs<T> args{.a = a.as<T>(),
                        .b = b.as<T>(),
                        .out = out.as<T>(),
                        .a_stride = a.row_stride(),
                        .b_stride = b.row_stride(),
                        .out_stride = out.row_stride(),
                        .rows = out.shape[0],
                        .columns = out.shape[1],
                        .slices = 1};
  if (args.rows == 0 || args.columns == 0) return;
  if (args.rows == 1 || (args.a_stride == args.columns && args.b_stride == args.columns &&
                         args.out_stride == args.columns)) {
    // One long row, whose stride is meaningless.
    args.columns *= args.rows;
    args.rows = 1;
    args.a_stride = args.b_stride = args.out_stride = 0;
  }
  const bool vectors = is_aligned(args.a, args.a_stride) && is_aligned(args.b, args.b_stride) &&
                       is_aligned(args.out, args.out_stride);
  const int64_t most = static_cast<int64_t>(multiprocessors) * kPointwiseWaves;
  args.slices =
      std::clamp<int64_t>(ceil_div(args.columns, kPointwiseThreads * (vectors ? 8 : 1)), 1, most);
  const int64_t bands = std::clamp<int64_t>(most / args.slices, 1, args.rows);
  const auto blocks = static_cast<unsigned>(args.slices * bands);
  if (vectors) {
    pointwise_kernel<T, Op, 8><<<blocks, kPointwiseThreads, 0, stream>>>(args);
  } else {
    pointwise_kernel<T, Op, 1><<<blocks, kPointwiseThreads, 0, stream>>>(args);
  }
}

template <class Op>
void launch(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
            int multiprocessors, CUstream_st* stream) {
  const auto typed = out.dtype == DType::bf16 ? launch_typed<bf16_t, Op> : launch_typed<float, Op>;
  typed(a, b, out, multiprocessors, stream);
}

}  // namespace

void launch_swiglu(const ConstTensorView& gate, const ConstTensorView& up, const TensorView& out,
                   int multiprocessors, CUstream_st* stream) {
  launch<SwiGlu>(gate, up, out, multiprocessors, stream);
}

void launch_activate(const ConstTensorView& x, Activation how, const TensorView& out,
                     int multiprocessors, CUstream_st* stream) {
  if (how == Activation::silu) {
    launch<Silu>(x, x, out, multiprocessors, stream);
  } else {
    launch<Gelu>(x, x, out, multiprocessors, stream);
  }
}

void launch_add(const TensorView& h, const ConstTensorView& x, int multiprocessors,
                CUstream_st* stream) {
  launch<Add>(h, x, h, multiprocessors, stream);
}

}  // namespace octet::cuda
