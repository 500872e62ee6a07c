// The sums of a group norm, of a whole image or of one that comes in strips, and the means and
// factors that follow from them; see group_norm.cu.
#pragma once

#include <algorithm>

#include "base/checked.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kGroupThreads = 256;
constexpr int kSumBlocks = 4;  // of a multiprocessor
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
  int64_t rows;                  // that x has: all pixels, or a strip of them
  int64_t channels, groups;
  const float* weight;
  const float* bias;
  float eps;
  bool silu;
  float* origins;  // [channels] of the image's first pixel; null: x begins with it
  float* sums;     // [bands, 2, channels]: of values, of squares
  float* means;    // [channels]
  float* factors;  // [channels]
};

template <class T, int kRun, bool kAligned>
__device__ void load_run(const T* from, float (&v)[kRun]) {
  if constexpr (kRun == 8 && kAligned) {
    load_eight<T>(from, v);
  } else {
#pragma unroll
    for (int i = 0; i < kRun; ++i) v[i] = load_one(from + i);
  }
}

// A thread's sums over the pixels of its column.
template <int kRun>
struct RunSums {
  float values[kRun] = {}, squares[kRun] = {};
};

// Adds the pixels of the image before `end`, from the thread's own pixel `first` on; x has its
// first row at pixel `begin`.
template <class T, int kRun, class Load>
__device__ void add_pixels(RunSums<kRun>& sums, const float (&origin)[kRun], const Tiling& tiling,
                           int64_t first, int64_t end, Load load) {
  const int64_t step = tiling.step();
  for (int64_t pixel = first; pixel < end; pixel += kAhead<T> * step) {
    float v[kAhead<T>][kRun];
#pragma unroll
    for (int a = 0; a < kAhead<T>; ++a) {
      const int64_t at = pixel + a * step;
      if (at < end) {
        load(at, v[a]);
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
        sums.values[i] += apart;
        sums.squares[i] = fmaf(apart, apart, sums.squares[i]);
      }
    }
  }
}

// The block's sums to args.sums: each column of its runs over its pixels, in their order.
template <class T, int kRun>
__device__ void store_sums(const GroupArgs<T>& args, const RunSums<kRun>& own) {
  __shared__ float parts[2 * kRun][kGroupThreads];
  const Tiling& tiling = args.tiling;
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    parts[i][threadIdx.x] = own.values[i];
    parts[kRun + i][threadIdx.x] = own.squares[i];
  }
  __syncthreads();
  // Column c of the block's runs, part e of each.
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

template <class T, int kRun, bool kAligned>
__global__ void __launch_bounds__(kGroupThreads, kAligned ? kSumBlocks : 2)
    sum_kernel(const GroupArgs<T> args) {
  const Tiling& tiling = args.tiling;
  const int64_t run = tiling.run(), channel = run * kRun;
  RunSums<kRun> sums;
  if (run < tiling.runs) {
    float origin[kRun];
    load_run<T, kRun, kAligned>(args.x + channel, origin);
    add_pixels<T>(sums, origin, tiling, tiling.first_pixel(), tiling.pixels,
                  [&](int64_t pixel, float(&v)[kRun]) {
                    load_run<T, kRun, kAligned>(args.x + pixel * args.x_stride + channel, v);
                  });
  }
  store_sums(args, sums);
}

// A thread's sums between two strips, [blocks, 2 * kRun, threads].
template <int kRun>
__device__ float* kept_sums(float* kept) {
  return kept + static_cast<int64_t>(blockIdx.x) * 2 * kRun * kGroupThreads + threadIdx.x;
}

// The pixels from `begin` on, of which x has args.rows.
template <class T, int kRun, bool kAligned>
__global__ void __launch_bounds__(kGroupThreads, 2)
    strip_sum_kernel(const GroupArgs<T> args, int64_t begin, float* kept) {
  const Tiling& tiling = args.tiling;
  const int64_t run = tiling.run(), channel = run * kRun;
  if (run >= tiling.runs) return;
  const auto load = [&](int64_t pixel, float(&v)[kRun]) {
    load_run<T, kRun, kAligned>(args.x + (pixel - begin) * args.x_stride + channel, v);
  };
  float* own = kept_sums<kRun>(kept);
  RunSums<kRun> sums;
  float origin[kRun];
  if (begin == 0) {
    load(0, origin);
    if (tiling.first_pixel() == 0) {
#pragma unroll
      for (int i = 0; i < kRun; ++i) args.origins[channel + i] = origin[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      origin[i] = args.origins[channel + i];
      sums.values[i] = own[i * kGroupThreads];
      sums.squares[i] = own[(kRun + i) * kGroupThreads];
    }
  }
  const int64_t step = tiling.step(), at = tiling.first_pixel();
  const int64_t first = at >= begin ? at : at + (begin - at + step - 1) / step * step;
  add_pixels<T>(sums, origin, tiling, first, begin + args.rows, load);
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    own[i * kGroupThreads] = sums.values[i];
    own[(kRun + i) * kGroupThreads] = sums.squares[i];
  }
}

template <class T, int kRun>
__global__ void __launch_bounds__(kGroupThreads)
    join_strips_kernel(const GroupArgs<T> args, float* kept) {
  RunSums<kRun> sums;
  if (args.tiling.run() < args.tiling.runs) {
    const float* own = kept_sums<kRun>(kept);
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      sums.values[i] = own[i * kGroupThreads];
      sums.squares[i] = own[(kRun + i) * kGroupThreads];
    }
  }
  store_sums(args, sums);
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
  const auto origin = [&](int64_t channel) {
    return args.origins != nullptr ? args.origins[channel] : load_one(args.x + channel);
  };
  const auto pixels = static_cast<double>(args.tiling.pixels);
  const double count = pixels * static_cast<double>(width);
  const int64_t parts = args.tiling.bands * width;
  double sum = 0;
  for (int64_t at = threadIdx.x; at < parts; at += kGroupThreads) {
    sum += args.sums[at / width * 2 * args.channels + first + at % width];
  }
  for (int64_t c = threadIdx.x; c < width; c += kGroupThreads) {
    sum += pixels * origin(first + c);
  }
  const double mean = block_sum(sum) / count;

  double squares = 0;
  for (int64_t at = threadIdx.x; at < parts; at += kGroupThreads) {
    const float* part = args.sums + at / width * 2 * args.channels + first + at % width;
    const double apart = mean - origin(first + at % width);
    squares += part[args.channels] - 2 * apart * part[0];
  }
  for (int64_t c = threadIdx.x; c < width; c += kGroupThreads) {
    const double apart = mean - origin(first + c);
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

}  // namespace
}  // namespace octet::cuda
