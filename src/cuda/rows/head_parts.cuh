// What the kernels on heads of rows share: RMS norm and rotation of each head, in registers.
//
// A team of lanes holds a head, eight pairs (j, j + half) per lane, so that both of a pair are in
// one thread and all accesses are 16 bytes wide: 16 lanes for heads of 256 channels. A warp takes a
// batch of heads of one row (for a mean, one head of several rows): their loads are on their way
// together, with those of the angles and weights, which serve all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"
#include "base/checked.h"
#include "cuda/rows/rotation.cuh"
#include "cuda/rows/team_rows.cuh"
#include "cuda/rows/values.cuh"

namespace octet::cuda {

inline constexpr int kHeadPairs = 8;  // of a lane
inline constexpr int kHeadThreads = 320;
inline constexpr int kHeadWarps = kHeadThreads / 32;
inline constexpr int kHeadBlocks = 2;  // on a multiprocessor
// Resident blocks that bound the registers. From sm_100 on the compiler needs a few more than two
// blocks leave, and a multiprocessor has a smaller share of the bandwidth to keep busy.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
inline constexpr int kBoundHeadBlocks = 1;
#else
inline constexpr int kBoundHeadBlocks = kHeadBlocks;
#endif
// Heads of a team in flight: with 16-bit values and 20 warps on a multiprocessor, 60 KB.
template <class T>
inline constexpr int kHeadBatch = sizeof(T) == 2 ? 3 : 2;

struct HeadArgs {
  const std::byte* x;          // [rows, heads * 2 * half]
  const float* weight;         // [2 * half]
  const float* second_weight;  // the same for heads from first_heads on
  const float* cos;            // [rows, half]
  const float* sin;            // [rows, half]
  int64_t pitch;               // of x, in bytes
  int64_t angles_stride;       // of cos and sin
  int64_t rows;
  int heads;
  int first_heads;
  int half;
  int lanes;          // of a team, a power of two
  float inverse_dim;  // 1 / head_dim
  float eps;

  HeadArgs(const ConstTensorView& matrix, const HeadRotation& how)
      : x(matrix.data),
        weight(how.weight.as<float>()),
        second_weight(how.second_weight.as<float>()),
        cos(how.cos.as<float>()),
        sin(how.sin.as<float>()),
        pitch(pitch_of(matrix)),
        angles_stride(how.cos.shape[0] > 1 ? how.cos.row_stride() : 0),
        rows(matrix.shape[0]),
        heads(static_cast<int>(how.heads)),
        first_heads(static_cast<int>(how.heads - how.second_heads)),
        half(static_cast<int>(matrix.shape[1] / how.heads / 2)),
        lanes(1),
        inverse_dim(static_cast<float>(how.heads) / static_cast<float>(matrix.shape[1])),
        eps(how.eps) {
    while (lanes < 32 && lanes * kHeadPairs < half) lanes *= 2;
  }
  // Whether teams can take the heads, with 16-byte accesses.
  bool fits_teams() const {
    return half % kHeadPairs == 0 && half <= 32 * kHeadPairs && rows * heads < (1 << 30) &&
           heads < (1 << 19) && is_aligned(x, 0, 16) && pitch % 16 == 0 &&
           is_aligned(weight, 0, 16) && is_aligned(second_weight, 0, 16) &&
           is_aligned(cos, 4 * angles_stride, 16) && is_aligned(sin, 4 * angles_stride, 16);
  }
  int teams() const { return 32 / lanes; }

  // The same with half a head's size known to the compiler, where kHalf is not 0.
  template <int kHalf>
  __device__ HeadArgs with_half() const {
    HeadArgs args = *this;
    if constexpr (kHalf > 0) {
      args.half = kHalf;
      args.lanes = kHalf / kHeadPairs;
    }
    return args;
  }
};

// Heads of a row in batches of this size, none with heads of both weights.
struct HeadBatches {
  int size;
  int of_first;  // batches of the first heads
  int count;

  HeadBatches(const HeadArgs& args, int batch)
      : size(args.teams() * batch),
        of_first((args.first_heads + size - 1) / size),
        count(of_first + (args.heads - args.first_heads + size - 1) / size) {}
  bool are_full(const HeadArgs& args) const {
    return args.first_heads % size == 0 && args.heads % size == 0;
  }
};

// Where a lane is, and which heads its warp takes. kFull: all batches have all of their heads.
template <bool kFull = false>
struct HeadPlace {
  int head;  // of the lane's team, the first; the next ones are `teams` apart
  int end;   // heads of the batch are below
  int teams;
  int j;  // the lane's first pair, at half or beyond for lanes without
  const float* weight;

  __device__ HeadPlace(const HeadArgs& args, const HeadBatches& batches, int batch) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool second = batch >= batches.of_first;
    teams = 32 / args.lanes;
    head = (second ? args.first_heads + (batch - batches.of_first) * batches.size
                   : batch * batches.size) +
           lane / args.lanes;
    end = second ? args.heads : args.first_heads;
    j = lane % args.lanes * kHeadPairs;
    weight = second ? args.second_weight : args.weight;
  }
  // All teams of a warp have the one head, each of a row of its own.
  __device__ HeadPlace(const HeadArgs& args, int head_of_all)
      : head(head_of_all),
        end(head_of_all + 1),
        teams(32 / args.lanes),
        j(static_cast<int>(threadIdx.x) % args.lanes * kHeadPairs),
        weight(head_of_all < args.first_heads ? args.weight : args.second_weight) {}
  __device__ bool has(int head_of_team) const { return kFull || head_of_team < end; }
  __device__ bool has_pairs(int half) const { return kFull || j < half; }
};

// The lane's pairs of a row's angles, or of the norm's weight: what belongs to the low halves, and
// what to the high ones.
struct PairFactors {
  float low[kHeadPairs], high[kHeadPairs];

  __device__ PairFactors(const float* of_low, const float* of_high, bool valid) {
    unpack_chunk(load_vector_chunk<float>(valid ? of_low : nullptr, 0), low);
    unpack_chunk(load_vector_chunk<float>(valid ? of_high : nullptr, 0), high);
  }
};

// A batch as it comes from memory; zeros where there is no row, head or pair.
template <class T, int kBatch>
struct LoadedHeads {
  Chunk<T> low[kBatch], high[kBatch];

  template <bool kFull>
  __device__ LoadedHeads(const HeadArgs& args, const HeadPlace<kFull>& place, int64_t row,
                         bool there = true) {
    constexpr int kBytes = sizeof(T);
    const std::byte* x = args.x + row * args.pitch + place.j * kBytes;
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int head = place.head + b * place.teams;
      const bool valid = there && place.has(head) && place.has_pairs(args.half);
      const std::byte* at = x + head * 2 * args.half * kBytes;
      low[b] = load_chunk<T>(at, valid);
      high[b] = load_chunk<T>(at + args.half * kBytes, valid);
    }
  }

  // The norm's factor for each head; all lanes of the warp take part.
  __device__ void norm_factors(const HeadArgs& args, float (&factor)[kBatch]) const {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      float l[kHeadPairs], h[kHeadPairs];
      unpack_chunk(low[b], l);
      unpack_chunk(high[b], h);
      factor[b] = 0;
#pragma unroll
      for (int i = 0; i < kHeadPairs; ++i) {
        factor[b] = fmaf(l[i], l[i], factor[b]);
        factor[b] = fmaf(h[i], h[i], factor[b]);
      }
    }
    for (int mask = 1; mask < args.lanes; mask *= 2) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) factor[b] = with_neighbour(factor[b], mask);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      factor[b] = rsqrtf(fmaf(factor[b], args.inverse_dim, args.eps));
    }
  }

  // The lane's pairs of head b, normed and rotated: low halves, then high ones. `angles`: cosines
  // and sines.
  __device__ void rotated(int b, float factor, const PairFactors& weight, const PairFactors& angles,
                          float (&y)[2 * kHeadPairs]) const {
    float l[kHeadPairs], h[kHeadPairs];
    unpack_chunk(low[b], l);
    unpack_chunk(high[b], h);
#pragma unroll
    for (int i = 0; i < kHeadPairs; ++i) {
      const float u = l[i] * factor * weight.low[i];
      const float v = h[i] * factor * weight.high[i];
      y[i] = fmaf(u, angles.low[i], -(v * angles.high[i]));
      y[kHeadPairs + i] = fmaf(v, angles.low[i], u * angles.high[i]);
    }
  }
};

// The same one pair at a time, for heads of any size and alignment, by one warp.
template <class T>
struct AnyHead {
  const T* x;
  const float *weight, *cos, *sin;
  int half;
  float factor;

  __device__ AnyHead(const HeadArgs& args, int64_t row, int head)
      : x(reinterpret_cast<const T*>(args.x + row * args.pitch) + int64_t{head} * 2 * args.half),
        weight(head < args.first_heads ? args.weight : args.second_weight),
        cos(args.cos + row * args.angles_stride),
        sin(args.sin + row * args.angles_stride),
        half(args.half) {
    float squares = 0;
    for (int j = static_cast<int>(threadIdx.x) % 32; j < 2 * half; j += 32) {
      const float value = load_one(x + j);
      squares = fmaf(value, value, squares);
    }
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) squares = with_neighbour(squares, mask);
    factor = rsqrtf(fmaf(squares, args.inverse_dim, args.eps));
  }
  __device__ float2 rotated(int j) const {
    const float u = load_one(x + j) * factor * weight[j];
    const float v = load_one(x + half + j) * factor * weight[half + j];
    return make_float2(fmaf(u, cos[j], -(v * sin[j])), fmaf(v, cos[j], u * sin[j]));
  }
};

// Warps of a launch take items in turn; this many blocks take all of them, or fill the GPU.
inline unsigned head_blocks(int64_t items, int multiprocessors, int resident) {
  return static_cast<unsigned>(
      std::min(ceil_div(items, kHeadWarps), int64_t{multiprocessors} * resident));
}

}  // namespace octet::cuda
