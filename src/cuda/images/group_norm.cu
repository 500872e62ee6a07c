// Group norm of an image in two passes over it. The first sums values and squares per channel,
// relative to the first pixel, so that the squares are not large compared with the variance,
// whatever the mean: a thread in f32 over the pixels of its column, a block over its threads. One
// block per group then adds the sums of all blocks in f64. The second pass writes
//   (x - mean) * (weight / sqrt(var + eps)) + bias.
#include <algorithm>

#include "backend/exact_silu.h"
#include "base/checked.h"
#include "cuda/images/image_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kGroupThreads = 256;
constexpr int kSumBlocks = 4;     // of a multiprocessor
constexpr int kApplyBlocks = 16;  // likewise, in several waves
// Pixels of a thread in flight: 64 bytes.
template <class T>
constexpr int kAhead = 8 / static_cast<int>(sizeof(T));

// How a block of threads lies over the image: `wide` runs of channels by `high` pixels; `slices`
// blocks share the channels, `bands` the pixels.
struct Tiling {
  int64_t pixels;
  int64_t runs;  // of a pixel
  int wide, high;
  int64_t slices, bands;

  Tiling(int64_t pixel_count, int64_t run_count, int64_t blocks)
      : pixels(pixel_count), runs(run_count), wide(1) {
    while (wide < kGroupThreads && wide < runs) wide *= 2;
    high = kGroupThreads / wide;
    slices = ceil_div(runs, wide);
    bands = std::clamp<int64_t>(blocks / slices, 1, ceil_div(pixels, high));
  }
  unsigned blocks() const { return static_cast<unsigned>(slices * bands); }

  __device__ int64_t run() const {
    return static_cast<int64_t>(blockIdx.x) % slices * wide + static_cast<int>(threadIdx.x) % wide;
  }
  __device__ int64_t band() const { return static_cast<int64_t>(blockIdx.x) / slices; }
  __device__ int64_t first_pixel() const {
    return band() * high + static_cast<int>(threadIdx.x) / wide;
  }
  __device__ int64_t step() const { return bands * high; }
};

template <class T>
struct GroupArgs {
  Tiling tiling;
  const T* x;
  T* out;
  int64_t x_stride, out_stride;  // in elements
  int64_t channels, groups;
  const float* weight;
  const float* bias;
  float eps;
  bool silu;
  float* sums;     // [bands, 2, channels]: of values, of squares
  float* means;    // [channels]
  float* factors;  // [channels]
};

template <class T, int kRun>
__device__ void load_run(const T* from, float (&v)[kRun]) {
  if constexpr (kRun == 8) {
    load_eight<T>(from, v);
  } else {
    v[0] = load_one(from);
  }
}

// Loads a pixel that may be overwritten with its norm, so not through the read-only cache.
template <class T, int kRun>
__device__ void load_own_run(const T* from, float (&v)[kRun]) {
  if constexpr (kRun == 8) {
    unpack_chunk(load_chunk<T>(reinterpret_cast<const std::byte*>(from), true), v);
  } else {
    v[0] = load_one(from);
  }
}

template <class T, int kRun>
__device__ void store_run(T* to, const float (&v)[kRun]) {
  if constexpr (kRun == 8) {
    store_eight<T>(to, v);
  } else {
    store_one(to, v[0]);
  }
}

template <class T, int kRun>
__global__ void __launch_bounds__(kGroupThreads, kSumBlocks) sum_kernel(const GroupArgs<T> args) {
  __shared__ float parts[2 * kRun][kGroupThreads];
  const Tiling& tiling = args.tiling;
  const int64_t run = tiling.run(), channel = run * kRun;
  float sums[kRun] = {}, squares[kRun] = {};
  if (run < tiling.runs) {
    float origin[kRun];
    load_run(args.x + channel, origin);
    const int64_t step = tiling.step();
    for (int64_t pixel = tiling.first_pixel(); pixel < tiling.pixels; pixel += kAhead<T> * step) {
      float v[kAhead<T>][kRun];
#pragma unroll
      for (int a = 0; a < kAhead<T>; ++a) {
        const int64_t at = pixel + a * step;
        if (at < tiling.pixels) {
          load_run(args.x + at * args.x_stride + channel, v[a]);
        } else {
#pragma unroll
          for (int i = 0; i < kRun; ++i) v[a][i] = origin[i];  // adds nothing
        }
      }
#pragma unroll
      for (int a = 0; a < kAhead<T>; ++a) {
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
          const float apart = v[a][i] - origin[i];
          sums[i] += apart;
          squares[i] = fmaf(apart, apart, squares[i]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    parts[i][threadIdx.x] = sums[i];
    parts[kRun + i][threadIdx.x] = squares[i];
  }
  __syncthreads();
  // Column c of the block's runs, part e of each: over the block's pixels, in their order.
  for (int at = static_cast<int>(threadIdx.x); at < 2 * kRun * tiling.wide; at += kGroupThreads) {
    const int c = at % tiling.wide, e = at / tiling.wide;
    float sum = 0;
    for (int y = 0; y < tiling.high; ++y) sum += parts[e][y * tiling.wide + c];
    const int64_t column = (static_cast<int64_t>(blockIdx.x) % tiling.slices * tiling.wide + c);
    if (column >= tiling.runs) continue;
    const int which = e / kRun;
    args.sums[(tiling.band() * 2 + which) * args.channels + column * kRun + e % kRun] = sum;
  }
}

__device__ double block_sum(double value) {
  __shared__ double of_warps[kGroupThreads / 32];
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  for (const double part : of_warps) sum += part;
  return sum;
}

// A block per group. With origin o, S and Q of a channel: sum x = S + n o, and around a mean m,
// sum (x - m)^2 = Q - 2 (m - o) S + n (m - o)^2.
template <class T>
__global__ void __launch_bounds__(kGroupThreads) moments_kernel(const GroupArgs<T> args) {
  const int64_t width = args.channels / args.groups, first = blockIdx.x * width;
  const auto pixels = static_cast<double>(args.tiling.pixels);
  const double count = pixels * static_cast<double>(width);
  const int64_t parts = args.tiling.bands * width;
  double sum = 0;
  for (int64_t at = threadIdx.x; at < parts; at += kGroupThreads) {
    sum += args.sums[at / width * 2 * args.channels + first + at % width];
  }
  for (int64_t c = threadIdx.x; c < width; c += kGroupThreads) {
    sum += pixels * load_one(args.x + first + c);
  }
  const double mean = block_sum(sum) / count;

  double squares = 0;
  for (int64_t at = threadIdx.x; at < parts; at += kGroupThreads) {
    const float* part = args.sums + at / width * 2 * args.channels + first + at % width;
    const double apart = mean - load_one(args.x + first + at % width);
    squares += part[args.channels] - 2 * apart * part[0];
  }
  for (int64_t c = threadIdx.x; c < width; c += kGroupThreads) {
    const double apart = mean - load_one(args.x + first + c);
    squares += pixels * apart * apart;
  }
  // Roundings must not make it negative; a NaN must stay a NaN.
  const double variance = block_sum(squares) / count;
  const double factor = 1 / sqrt((variance < 0 ? 0 : variance) + args.eps);
  for (int64_t c = threadIdx.x; c < width; c += kGroupThreads) {
    args.means[first + c] = static_cast<float>(mean);
    args.factors[first + c] = static_cast<float>(factor * args.weight[first + c]);
  }
}

template <class T, int kRun>
__global__ void __launch_bounds__(kGroupThreads, 3) apply_kernel(const GroupArgs<T> args) {
  const Tiling& tiling = args.tiling;
  const int64_t run = tiling.run(), channel = run * kRun;
  if (run >= tiling.runs) return;
  float mean[kRun], factor[kRun], bias[kRun];
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    mean[i] = args.means[channel + i];
    factor[i] = args.factors[channel + i];
    bias[i] = args.bias[channel + i];
  }
  constexpr int kRows = kAhead<T> / 2;
  const int64_t step = tiling.step();
  for (int64_t pixel = tiling.first_pixel(); pixel < tiling.pixels; pixel += kRows * step) {
    float v[kRows][kRun];
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
      const int64_t at = pixel + a * step;
      if (at < tiling.pixels) load_own_run(args.x + at * args.x_stride + channel, v[a]);
    }
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
      const int64_t at = pixel + a * step;
      if (at >= tiling.pixels) continue;
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        const float y = fmaf(v[a][i] - mean[i], factor[i], bias[i]);
        v[a][i] = args.silu ? exact_silu(y) : y;
      }
      store_run(args.out + at * args.out_stride + channel, v[a]);
    }
  }
}

int64_t sum_bands(const ConstTensorView& x, int64_t run, int multiprocessors) {
  return Tiling(x.shape[0], ceil_div(x.shape[1], run), int64_t{kSumBlocks} * multiprocessors).bands;
}

template <class T, int kRun>
void launch_runs(GroupArgs<T> args, int multiprocessors, CUstream_st* stream) {
  const int64_t pixels = args.tiling.pixels, runs = args.channels / kRun;
  args.tiling = Tiling(pixels, runs, int64_t{kSumBlocks} * multiprocessors);
  sum_kernel<T, kRun><<<args.tiling.blocks(), kGroupThreads, 0, stream>>>(args);
  moments_kernel<T><<<static_cast<unsigned>(args.groups), kGroupThreads, 0, stream>>>(args);
  args.tiling = Tiling(pixels, runs, int64_t{kApplyBlocks} * multiprocessors);
  apply_kernel<T, kRun><<<args.tiling.blocks(), kGroupThreads, 0, stream>>>(args);
}

template <class T>
void launch_typed(const ConstTensorView& x, const GroupNorm& how, const TensorView& out,
                  float* scratch, int multiprocessors, CUstream_st* stream) {
  const int64_t pixels = x.shape[0], channels = x.shape[1];
  const GroupArgs<T> args{.tiling = Tiling(pixels, channels, 1),
                          .x = x.as<T>(),
                          .out = out.as<T>(),
                          .x_stride = pixels > 1 ? x.row_stride() : 0,
                          .out_stride = pixels > 1 ? out.row_stride() : 0,
                          .channels = channels,
                          .groups = how.groups,
                          .weight = how.weight.as<float>(),
                          .bias = how.bias.as<float>(),
                          .eps = how.eps,
                          .silu = how.silu,
                          .sums = scratch + 2 * channels,
                          .means = scratch,
                          .factors = scratch + channels};
  const auto is_aligned = [](const T* data, int64_t stride) {
    return (reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(stride * sizeof(T))) % 16 ==
           0;
  };
  if (channels % 8 == 0 && is_aligned(args.x, args.x_stride) &&
      is_aligned(args.out, args.out_stride)) {
    launch_runs<T, 8>(args, multiprocessors, stream);
  } else {
    launch_runs<T, 1>(args, multiprocessors, stream);
  }
}

}  // namespace

size_t group_norm_scratch_bytes(const ConstTensorView& x, int multiprocessors) {
  const int64_t bands =
      std::max(sum_bands(x, 8, multiprocessors), sum_bands(x, 1, multiprocessors));
  return static_cast<size_t>((bands * 2 + 2) * x.shape[1]) * sizeof(float);
}

void launch_group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out,
                       std::byte* scratch, int multiprocessors, CUstream_st* stream) {
  const auto launch = x.dtype == DType::bf16 ? launch_typed<bf16_t> : launch_typed<float>;
  launch(x, how, out, reinterpret_cast<float*>(scratch), multiprocessors, stream);
}

}  // namespace octet::cuda
