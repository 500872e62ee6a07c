// A step of Euler's method: bound by memory, and short compared with the rest of a step.
#include <algorithm>

#include "base/checked.h"
#include "cuda/rows/model_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kEulerThreads = 256;

template <class T>
struct EulerArgs {
  const T* velocities[kMostBranches];  // of the branches, then null
  float weights[kMostBranches];
  float delta;
  float* z;
  float* velocity;
  T* rounded;  // or null
  int32_t* overflow;
  int64_t strides[kMostBranches];  // of the branches
  int64_t z_stride, velocity_stride, rounded_stride;
  int64_t rows, columns;
};

// Each operation rounds by itself: none may be fused into a multiply-add.
template <class T>
__global__ void __launch_bounds__(kEulerThreads) euler_kernel(const EulerArgs<T> args) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kEulerThreads;
  bool is_finite = true;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kEulerThreads + threadIdx.x;
       at < args.rows * args.columns; at += step) {
    const int64_t i = at / args.columns, j = at % args.columns;
    float v = __fmul_rn(args.weights[0], load_one(args.velocities[0] + i * args.strides[0] + j));
#pragma unroll
    for (size_t b = 1; b < kMostBranches; ++b) {
      if (args.velocities[b] == nullptr) break;
      const float other = load_one(args.velocities[b] + i * args.strides[b] + j);
      v = __fadd_rn(v, __fmul_rn(args.weights[b], other));
    }
    float* place = args.z + i * args.z_stride + j;
    const float z = __fadd_rn(*place, __fmul_rn(args.delta, v));
    *place = z;
    args.velocity[i * args.velocity_stride + j] = v;
    if (args.rounded != nullptr) store_one(args.rounded + i * args.rounded_stride + j, z);
    is_finite = is_finite && isfinite(z);
  }
  if (!is_finite) *args.overflow = 1;  // all threads write the same value
}

template <class T>
void launch_euler(const EulerStep& step, int multiprocessors, CUstream_st* stream) {
  constexpr int kWaves = 16;  // blocks of a multiprocessor
  EulerArgs<T> args{.delta = step.delta,
                    .z = step.z.as<float>(),
                    .velocity = step.velocity.as<float>(),
                    .rounded = step.rounded.as<T>(),
                    .overflow = step.overflow.as<int32_t>(),
                    .z_stride = step.z.row_stride(),
                    .velocity_stride = step.velocity.row_stride(),
                    .rounded_stride = step.rounds() ? step.rounded.row_stride() : 0,
                    .rows = step.z.shape[0],
                    .columns = step.z.shape[1]};
  for (size_t b = 0; b < step.count; ++b) {
    args.velocities[b] = step.branches[b].velocity.as<T>();
    args.weights[b] = step.branches[b].weight;
    args.strides[b] = step.branches[b].velocity.row_stride();
  }
  const auto blocks = std::min<int64_t>(ceil_div(args.rows * args.columns, kEulerThreads),
                                        static_cast<int64_t>(multiprocessors) * kWaves);
  euler_kernel<T><<<static_cast<unsigned>(blocks), kEulerThreads, 0, stream>>>(args);
}

}  // namespace

void launch_euler_step(const EulerStep& step, int multiprocessors, CUstream_st* stream) {
  const auto typed = step.dtype() == DType::bf16 ? launch_euler<bf16_t> : launch_euler<float>;
  typed(step, multiprocessors, stream);
}

}  // namespace octet::cuda
