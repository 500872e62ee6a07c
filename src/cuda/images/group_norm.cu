// Group norm of an image in two passes over it. The first sums values and squares per channel,
// relative to the first pixel, so that the squares are not large compared with the variance,
// whatever the mean: a thread in f32 over the pixels of its column, a block over its threads. One
// block per group then adds the sums of all blocks in f64. The second pass writes
//   (x - mean) * (weight / sqrt(var + eps)) + bias.
//
// Of an image that comes in strips, each thread of the first pass leaves its sums in memory and
// goes on with them in the next strip: it adds the same pixels in the same order.
#include <algorithm>

#include "backend/exact_silu.h"
#include "cuda/images/group_sums.cuh"
#include "cuda/images/image_kernels.h"

namespace octet::cuda {
namespace {

constexpr int kApplyBlocks = 16;  // of a multiprocessor, in several waves

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

Tiling sum_tiling(int64_t pixels, int64_t runs, int multiprocessors) {
  return Tiling(pixels, runs, int64_t{kSumBlocks} * multiprocessors);
}

template <class T>
bool is_aligned(const T* data, int64_t stride) {
  return (reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(stride * sizeof(T))) % 16 == 0;
}

template <class T, int kRun>
void launch_apply(GroupArgs<T> args, int multiprocessors, CUstream_st* stream) {
  args.tiling = Tiling(args.rows, args.channels / kRun, int64_t{kApplyBlocks} * multiprocessors);
  apply_kernel<T, kRun><<<args.tiling.blocks(), kGroupThreads, 0, stream>>>(args);
}

// What GroupSums::memory holds: the origins, then the threads' sums.
float* origins_in(const GroupSums& sums) { return reinterpret_cast<float*>(sums.memory.data()); }
float* kept_in(const GroupSums& sums) { return origins_in(sums) + sums.channels; }

template <class T, int kRun, bool kAligned>
void launch_whole(GroupArgs<T> args, int multiprocessors, CUstream_st* stream) {
  args.tiling = sum_tiling(args.rows, args.channels / kRun, multiprocessors);
  sum_kernel<T, kRun, kAligned><<<args.tiling.blocks(), kGroupThreads, 0, stream>>>(args);
  moments_kernel<T><<<static_cast<unsigned>(args.groups), kGroupThreads, 0, stream>>>(args);
}

template <class T, int kRun>
void launch_joined(GroupArgs<T> args, const GroupSums& image, int multiprocessors,
                   CUstream_st* stream) {
  args.tiling = sum_tiling(image.rows, args.channels / kRun, multiprocessors);
  args.origins = origins_in(image);
  join_strips_kernel<T, kRun>
      <<<args.tiling.blocks(), kGroupThreads, 0, stream>>>(args, kept_in(image));
  moments_kernel<T><<<static_cast<unsigned>(args.groups), kGroupThreads, 0, stream>>>(args);
}

template <class T>
void launch_typed(const ConstTensorView& x, const GroupNorm& how, const TensorView& out,
                  float* scratch, int multiprocessors, CUstream_st* stream) {
  const int64_t rows = x.shape[0], channels = x.shape[1];
  GroupArgs<T> args{.tiling = Tiling(rows, channels, 1),
                    .x = x.as<T>(),
                    .out = out.as<T>(),
                    .x_stride = rows > 1 ? x.row_stride() : 0,
                    .out_stride = rows > 1 ? out.row_stride() : 0,
                    .rows = rows,
                    .channels = channels,
                    .groups = how.groups,
                    .weight = how.weight.as<float>(),
                    .bias = how.bias.as<float>(),
                    .eps = how.eps,
                    .silu = how.silu,
                    .origins = nullptr,
                    .sums = scratch + 2 * channels,
                    .means = scratch,
                    .factors = scratch + channels};
  const bool wide = channels % 8 == 0, aligned = is_aligned(args.x, args.x_stride);
  if (how.image != nullptr) {
    const auto joined = wide ? launch_joined<T, 8> : launch_joined<T, 1>;
    joined(args, *how.image, multiprocessors, stream);
  } else {
    // Where the image lies says nothing about its sums.
    const auto whole = !wide     ? launch_whole<T, 1, true>
                       : aligned ? launch_whole<T, 8, true>
                                 : launch_whole<T, 8, false>;
    whole(args, multiprocessors, stream);
  }
  const bool applies_wide = wide && aligned && is_aligned(args.out, args.out_stride);
  const auto apply = applies_wide ? launch_apply<T, 8> : launch_apply<T, 1>;
  apply(args, multiprocessors, stream);
}

template <class T, int kRun, bool kAligned>
void launch_strip(GroupArgs<T> args, const GroupSums& sums, int multiprocessors,
                  CUstream_st* stream) {
  args.tiling = sum_tiling(sums.rows, sums.channels / kRun, multiprocessors);
  strip_sum_kernel<T, kRun, kAligned>
      <<<args.tiling.blocks(), kGroupThreads, 0, stream>>>(args, sums.added, kept_in(sums));
}

template <class T>
void launch_strip_typed(const GroupSums& sums, const ConstTensorView& x, int multiprocessors,
                        CUstream_st* stream) {
  const GroupArgs<T> args{.tiling = Tiling(x.shape[0], x.shape[1], 1),
                          .x = x.as<T>(),
                          .x_stride = x.shape[0] > 1 ? x.row_stride() : 0,
                          .rows = x.shape[0],
                          .channels = x.shape[1],
                          .origins = origins_in(sums)};
  const auto launch = sums.channels % 8 != 0              ? launch_strip<T, 1, true>
                      : is_aligned(args.x, args.x_stride) ? launch_strip<T, 8, true>
                                                          : launch_strip<T, 8, false>;
  launch(args, sums, multiprocessors, stream);
}

}  // namespace

size_t group_norm_scratch_bytes(const ConstTensorView& x, const GroupNorm& how,
                                int multiprocessors) {
  const int64_t pixels = how.image == nullptr ? x.shape[0] : how.image->rows, channels = x.shape[1];
  const auto bands = [&](int64_t run) {
    return sum_tiling(pixels, ceil_div(channels, run), multiprocessors).bands;
  };
  return static_cast<size_t>((std::max(bands(8), bands(1)) * 2 + 2) * channels) * sizeof(float);
}

void launch_group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out,
                       std::byte* scratch, int multiprocessors, CUstream_st* stream) {
  const auto launch = x.dtype == DType::bf16 ? launch_typed<bf16_t> : launch_typed<float>;
  launch(x, how, out, reinterpret_cast<float*>(scratch), multiprocessors, stream);
}

size_t group_sums_bytes(const GroupSums& sums, int multiprocessors) {
  const int64_t run = sums.channels % 8 == 0 ? 8 : 1;
  const Tiling tiling = sum_tiling(sums.rows, sums.channels / run, multiprocessors);
  return static_cast<size_t>(sums.channels + int64_t{tiling.blocks()} * 2 * run * kGroupThreads) *
         sizeof(float);
}

void launch_group_sums(const GroupSums& sums, const ConstTensorView& x, int multiprocessors,
                       CUstream_st* stream) {
  const auto launch =
      x.dtype == DType::bf16 ? launch_strip_typed<bf16_t> : launch_strip_typed<float>;
  launch(sums, x, multiprocessors, stream);
}

}  // namespace octet::cuda
