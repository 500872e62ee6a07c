// Fills the pipeline's stages: this thread's share of the cp.async copies, running ahead of the
// multiplications and across the borders of tiles, so that the next tile's operands arrive while
// the epilogue of this one runs.
//
// A stage holds T.m rows of a, then T.n rows of w, T.k bytes each, in chunks of 16 bytes. Within a
// row the chunks are exchanged (chunk ^ swizzle(row)), such that the eight rows which one ldmatrix
// phase reads lie in eight different bank groups.
//
// The instructions around the copies matter: they delay the multiplications of the same warp. w is
// packed such that the copies of a thread lie at constant distances, and needs no conditions.
#pragma once

#include "cuda/gemm/pack.h"
#include "cuda/gemm/params.h"
#include "cuda/gemm/schedule.cuh"
#include "cuda/gemm/tile.h"
#include "cuda/ptx/cp_async.cuh"

namespace octet::cuda {

// Rows of 64 bytes share a 128-byte line of banks in pairs.
template <Tile T>
__device__ constexpr int swizzle(int row) {
  return T.k == 128 ? row & 7 : row >> 1 & 3;
}

template <Tile T>
class Loader {
 public:
  // `stages`: address of the first of T.stages.
  __device__ Loader(const GemmParams& params, uint32_t stages)
      : to_(stages + first_row() * T.k + (first_chunk() ^ swizzle<T>(first_row())) * 16),
        stride_a_(ptx::keep_in_register(static_cast<uint32_t>(params.a_stride))) {}

  // Part `kPart` of `kParts` of the next stage's copies, into `slot`.
  template <int kPart, int kParts>
  __device__ __forceinline__ void copy_part(const GemmParams& params, uint32_t slot) {
    constexpr int kCopies = kCopiesA + kCopiesW;
    const uint32_t to = to_ + slot * T.stage_bytes();
    if constexpr (kPart == 0) begin_stage(params);
#pragma unroll
    for (int i = kCopies * kPart / kParts; i < kCopies * (kPart + 1) / kParts; ++i) {
      if (i < kCopiesA) {
        ptx::cp_async_16_if(i < copies_a_, to + i * kRowStep * T.k,
                            params.a + a_ + uint64_t{stride_a_} * (i * kRowStep));
      } else {
        const int place = (i - kCopiesA) * kRowStep;
        const bool in_tile = T.n % kRowStep == 0 || first_row() + place < T.n;
        ptx::cp_async_16_if(left_ >= 2 && in_tile, to + (T.m + place) * T.k,
                            params.w + w_ + place * kBlock);
      }
    }
  }

  // After the last part.
  __device__ __forceinline__ void end_stage(const GemmParams& params) {
    a_ += T.k;
    const uint32_t to_next_block = static_cast<uint32_t>(params.packed_n) * kBlock;
    if constexpr (T.k == kBlock) {
      w_ += to_next_block;
    } else {
      w_ += second_half_ ? to_next_block - T.k : T.k;
      second_half_ = !second_half_;
    }
    left_ = max(left_ - 2, 0);
    if (left_ == 3) copies_a_ = 0;
  }

 private:
  static constexpr int kBlock = kBlockBytes;              // bytes of a row of packed w
  static constexpr int kChunks = T.k / 16;                // of a row in shared memory
  static constexpr int kRowStep = T.threads() / kChunks;  // rows that one copy of all threads takes
  static constexpr int kCopiesA = (T.m + kRowStep - 1) / kRowStep;
  static constexpr int kCopiesW = (T.n + kRowStep - 1) / kRowStep;
  static_assert(T.n * kBlock <= kReadPast, "the last tile reads past the last row");
  static_assert(kRowStep % 8 == 0, "the swizzle must be the same for all copies of a thread");

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kChunks; }
  __device__ static int first_chunk() { return static_cast<int>(threadIdx.x) % kChunks; }

  __device__ __forceinline__ void begin_stage(const GemmParams& params) {
    if (left_ >= 2) return;
    Work work;
    if (!list_.next(params, work)) {  // this stage and those that follow stay empty
      copies_a_ = 0;
      return;
    }
    const TilePlace place = place_of(params, work.tile);
    const int row_a = place.row * T.m + first_row();
    const int row_w = place.column * T.n + first_row();
    const int k = work.k_begin * T.k;
    a_ = row_a * stride_a_ + k + first_chunk() * 16;
    w_ = (static_cast<uint32_t>(k / kBlock) * params.packed_n + row_w) * kBlock + k % kBlock +
         first_chunk() * 16;
    second_half_ = k % kBlock != 0;
    const int rows = min(T.m - first_row(), params.m - row_a);
    copies_a_ = (rows + kRowStep - 1) / kRowStep;
    // Past the end of k, w is zero and whatever is left in the stage will do for a.
    const bool past_k = work.k_end * T.k - T.k + first_chunk() * 16 >= params.k;
    left_ = 2 * (work.k_end - work.k_begin) + (past_k ? 1 : 0);
    if (left_ == 3) copies_a_ = 0;
  }

  WorkList<1> list_;
  uint32_t to_;        // where this thread's first copy goes in slot 0
  uint32_t stride_a_;  // loaded from the constants for each copy, it would stall the warp
  uint32_t a_ = 0;     // from params.a on: one register less than a pointer
  uint32_t w_ = 0;     // from params.w on: one register less than a pointer
  int copies_a_ = 0;   // of rows that exist
  // Twice the stages left of the current work, plus one when this thread's chunk of the last of
  // them lies past the end of k: two registers would be one too many.
  int left_ = 0;
  bool second_half_ = false;  // of a block of w, when a stage takes half a block
};

}  // namespace octet::cuda
