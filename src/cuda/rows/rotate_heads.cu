// RMS norm and rotation of the heads of rows, in place.
#include "cuda/rows/head_kernels.h"
#include "cuda/rows/head_parts.cuh"

namespace octet::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kHeadThreads, kBoundHeadBlocks)
    rotate_heads_kernel(const HeadArgs args, const HeadBatches batches, std::byte* out) {
  constexpr int kBytes = sizeof(T);
  const int warps = static_cast<int>(gridDim.x) * kHeadWarps;
  const int items = static_cast<int>(args.rows) * batches.count;
  for (int item = static_cast<int>(blockIdx.x) * kHeadWarps + static_cast<int>(threadIdx.x) / 32;
       item < items; item += warps) {
    const int row_index = item / batches.count;
    const HeadPlace<> place(args, batches, item - row_index * batches.count);
    const int64_t row = row_index;
    const LoadedHeads<T, kHeadBatch<T>> heads(args, place, row);
    const bool valid = place.j < args.half;
    const int64_t angle = row * args.angles_stride + place.j;
    const PairFactors angles(args.cos + angle, args.sin + angle, valid);
    const PairFactors weight(place.weight + place.j, place.weight + args.half + place.j, valid);
    float factor[kHeadBatch<T>];
    heads.norm_factors(args, factor);
#pragma unroll
    for (int b = 0; b < kHeadBatch<T>; ++b) {
      const int head = place.head + b * place.teams;
      float y[2 * kHeadPairs];
      heads.rotated(b, factor[b], weight, angles, y);
      if (head >= place.end || !valid) continue;
      std::byte* at = out + row * args.pitch + (head * 2 * args.half + place.j) * kBytes;
      store_chunk(at, pack_chunk<T>(y));
      store_chunk(at + args.half * kBytes, pack_chunk<T>(y + kHeadPairs));
    }
  }
}

// A warp per head, which reads it twice.
template <class T>
__global__ void __launch_bounds__(kHeadThreads)
    rotate_any_kernel(const HeadArgs args, std::byte* out) {
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kHeadWarps;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kHeadWarps + threadIdx.x / 32;
       item < args.rows * args.heads; item += warps) {
    const int64_t row = item / args.heads;
    const int index = static_cast<int>(item - row * args.heads);
    const AnyHead<T> head(args, row, index);
    T* to = reinterpret_cast<T*>(out + row * args.pitch) + int64_t{index} * 2 * args.half;
    for (int j = static_cast<int>(threadIdx.x) % 32; j < args.half; j += 32) {
      const float2 y = head.rotated(j);
      store_one(to + j, y.x);
      store_one(to + args.half + j, y.y);
    }
  }
}

template <class T>
void launch_typed(const TensorView& x, const HeadRotation& how, int multiprocessors,
                  CUstream_st* stream) {
  const HeadArgs args(x, how);
  if (args.fits_teams()) {
    const HeadBatches batches(args, kHeadBatch<T>);
    const unsigned blocks = head_blocks(args.rows * batches.count, multiprocessors, kHeadBlocks);
    rotate_heads_kernel<T><<<blocks, kHeadThreads, 0, stream>>>(args, batches, x.data);
  } else {
    const unsigned blocks = head_blocks(args.rows * args.heads, multiprocessors, 8);
    rotate_any_kernel<T><<<blocks, kHeadThreads, 0, stream>>>(args, x.data);
  }
}

}  // namespace

void launch_rotate_heads(const TensorView& x, const HeadRotation& how, int multiprocessors,
                         CUstream_st* stream) {
  const auto launch = x.dtype == DType::bf16 ? launch_typed<bf16_t> : launch_typed<float>;
  launch(x, how, multiprocessors, stream);
}

}  // namespace octet::cuda
