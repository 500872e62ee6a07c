// RMS norm and rotation of the heads of rows, in place. A team of lanes takes a head, four pairs
// (j, j + half) or eight per lane, so that both of a pair are in one thread; heads of 256 channels
// fill a warp, several smaller ones share it. A warp takes a few heads of one row at a time: their
// loads overlap, and its angles and weights serve all of them.
#include <algorithm>

#include "base/checked.h"
#include "cuda/rows/model_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBatch = 3;    // heads of a team in flight
constexpr int kRun = 4;      // pairs whose halves are one access each
constexpr int kMaxRuns = 2;  // of a lane
constexpr unsigned kAll = 0xffffffffu;
constexpr int64_t kMaxBlocks = 1 << 20;  // warps stride beyond

template <class T>
struct RotateArgs {
  T* x;                 // [rows, heads * 2 * half]
  const float* weight;  // [2 * half]
  const float* cos;     // [rows, half]
  const float* sin;     // [rows, half]
  int64_t stride;       // of x, in elements
  int64_t rows;
  int heads;
  int half;
  int lanes;          // of a team, a power of two
  float inverse_dim;  // 1 / head_dim
  float eps;
};

__device__ inline void load_four(const float* from, float (&v)[kRun]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  v[0] = four.x;
  v[1] = four.y;
  v[2] = four.z;
  v[3] = four.w;
}
__device__ inline void load_four(const bf16_t* from, float (&v)[kRun]) {
  const uint2 four = *reinterpret_cast<const uint2*>(from);
  unpack_pair<bf16_t>(four.x, v);
  unpack_pair<bf16_t>(four.y, v + 2);
}
__device__ inline void store_four(float* to, const float (&v)[kRun]) {
  store_vector(to, make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                              __float_as_uint(v[3])));
}
__device__ inline void store_four(bf16_t* to, const float (&v)[kRun]) {
  store_vector(to, make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3])));
}

// kRuns: of a lane, 2 for half > 128.
template <class T, int kRuns>
__global__ void __launch_bounds__(kThreads) rotate_heads_kernel(const RotateArgs<T> args) {
  const int warp = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(gridDim.x) * kWarps;
  const int lane = static_cast<int>(threadIdx.x) % args.lanes;
  const int team = static_cast<int>(threadIdx.x) % 32 / args.lanes;
  const int teams = 32 / args.lanes;
  const int items_per_row = (args.heads + teams * kBatch - 1) / (teams * kBatch);
  const auto items = static_cast<int>(args.rows) * items_per_row;

  for (int item = warp; item < items; item += warps) {
    const int row = item / items_per_row;
    const int first_head = (item - row * items_per_row) * teams * kBatch + team;
    T* x = args.x + row * args.stride;
    float low[kBatch][kRuns][kRun] = {}, high[kBatch][kRuns][kRun] = {};
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int head = first_head + b * teams;
#pragma unroll
      for (int r = 0; r < kRuns; ++r) {
        const int j = (r * args.lanes + lane) * kRun;
        if (head < args.heads && j < args.half) {
          const T* at = x + head * 2 * args.half + j;
          load_four(at, low[b][r]);
          load_four(at + args.half, high[b][r]);
        }
      }
    }
    float factor[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      float squares = 0;
#pragma unroll
      for (int r = 0; r < kRuns; ++r) {
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
          squares = fmaf(low[b][r][i], low[b][r][i], squares);
          squares = fmaf(high[b][r][i], high[b][r][i], squares);
        }
      }
      for (int mask = 1; mask < args.lanes; mask *= 2) {
        squares += __shfl_xor_sync(kAll, squares, mask);
      }
      factor[b] = rsqrtf(fmaf(squares, args.inverse_dim, args.eps));
    }
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const int j = (r * args.lanes + lane) * kRun;
      if (j >= args.half) continue;
      float cos[kRun], sin[kRun], weight_low[kRun], weight_high[kRun];
      load_four(args.cos + static_cast<int64_t>(row) * args.half + j, cos);
      load_four(args.sin + static_cast<int64_t>(row) * args.half + j, sin);
      load_four(args.weight + j, weight_low);
      load_four(args.weight + args.half + j, weight_high);
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int head = first_head + b * teams;
        float y_low[kRun], y_high[kRun];
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
          const float u = low[b][r][i] * factor[b] * weight_low[i];
          const float v = high[b][r][i] * factor[b] * weight_high[i];
          y_low[i] = fmaf(u, cos[i], -(v * sin[i]));
          y_high[i] = fmaf(v, cos[i], u * sin[i]);
        }
        if (head < args.heads) {
          T* at = x + head * 2 * args.half + j;
          store_four(at, y_low);
          store_four(at + args.half, y_high);
        }
      }
    }
  }
}

// Any head_dim, stride and alignment: a warp per head, which reads it twice.
template <class T>
__global__ void __launch_bounds__(kThreads) rotate_any_kernel(const RotateArgs<T> args) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
       item < args.rows * args.heads; item += warps) {
    const int64_t row = item / args.heads, head = item % args.heads;
    T* x = args.x + row * args.stride + head * 2 * args.half;
    float squares = 0;
    for (int j = lane; j < 2 * args.half; j += 32) {
      const float value = load_one(x + j);
      squares = fmaf(value, value, squares);
    }
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) squares += __shfl_xor_sync(kAll, squares, mask);
    const float factor = rsqrtf(fmaf(squares, args.inverse_dim, args.eps));
    for (int j = lane; j < args.half; j += 32) {
      const float u = load_one(x + j) * factor * args.weight[j];
      const float v = load_one(x + args.half + j) * factor * args.weight[args.half + j];
      const float cos = args.cos[row * args.half + j], sin = args.sin[row * args.half + j];
      store_one(x + j, fmaf(u, cos, -(v * sin)));
      store_one(x + args.half + j, fmaf(v, cos, u * sin));
    }
  }
}

bool is_aligned(const void* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

template <class T>
void launch_typed(const TensorView& x, const HeadRotation& how, CUstream_st* stream) {
  RotateArgs<T> args{.x = x.as<T>(),
                     .weight = how.weight.as<float>(),
                     .cos = how.cos.as<float>(),
                     .sin = how.sin.as<float>(),
                     .stride = x.shape[0] > 1 ? x.row_stride() : 0,
                     .rows = x.shape[0],
                     .heads = static_cast<int>(how.heads),
                     .half = static_cast<int>(x.shape[1] / how.heads / 2),
                     .lanes = 1,
                     .inverse_dim = static_cast<float>(how.heads) / static_cast<float>(x.shape[1]),
                     .eps = how.eps};
  while (args.lanes < 32 && args.lanes * kRun < args.half) args.lanes *= 2;
  const int64_t items = args.rows * ceil_div(args.heads, 32 / args.lanes * kBatch);
  const int64_t runs = ceil_div(args.half, int64_t{kRun} * args.lanes);
  const bool fast = args.half % kRun == 0 && runs <= kMaxRuns && items < (1 << 30) &&
                    args.stride % kRun == 0 && is_aligned(args.x, kRun * sizeof(T)) &&
                    is_aligned(args.weight, 16) && is_aligned(args.cos, 16) &&
                    is_aligned(args.sin, 16);
  const int64_t warps = fast ? items : args.rows * args.heads;
  const auto blocks = static_cast<unsigned>(std::min(ceil_div(warps, kWarps), kMaxBlocks));
  if (!fast) {
    rotate_any_kernel<T><<<blocks, kThreads, 0, stream>>>(args);
  } else if (runs == 1) {
    rotate_heads_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(args);
  } else {
    rotate_heads_kernel<T, 2><<<blocks, kThreads, 0, stream>>>(args);
  }
}

}  // namespace

void launch_rotate_heads(const TensorView& x, const HeadRotation& how, CUstream_st* stream) {
  if (x.dtype == DType::bf16) {
    launch_typed<bf16_t>(x, how, stream);
  } else {
    launch_typed<float>(x, how, stream);
  }
}

}  // namespace octet::cuda
