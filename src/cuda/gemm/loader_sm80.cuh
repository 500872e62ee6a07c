// Fills the pipeline's stages: this thread's share of the cp.async copies, running ahead of the
// multiplications and across the borders of tiles, so that the next tile's operands arrive while
// the epilogue of this one runs.
//
// A stage holds T.m rows of a, then T.n rows of w, T.k bytes each, in chunks of 16 bytes. Within a
// row the chunks are swizzled (chunk ^ swizzle(row)), such that the eight rows which one ldmatrix
// phase reads are in eight different bank groups.
//
// The instructions around the copies matter: they delay the multiplications of the same warp. In a
// packed w the copies of a thread are at constant distances and need no conditions.
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

// This thread's share of the copies: a chunk of every kRowStep-th row.
template <Tile T>
struct CopyShare {
  static constexpr int kChunks = T.k / 16;                // of a row in shared memory
  static constexpr int kRowStep = T.threads() / kChunks;  // rows that one copy of all threads takes
  static constexpr int kCopiesA = (T.m + kRowStep - 1) / kRowStep;
  static constexpr int kCopiesW = (T.n + kRowStep - 1) / kRowStep;
  static_assert(kRowStep % 8 == 0, "the swizzle must be the same for all copies of a thread");

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kChunks; }
  __device__ static int first_chunk() { return static_cast<int>(threadIdx.x) % kChunks; }
};

// Where the rows of a packed weight (pack.h) come from.
template <Tile T>
class PackedRows : CopyShare<T> {
 public:
  __device__ explicit PackedRows(const GemmParams&) {}

  // A tile whose rows begin at `row`, from byte `k` of them on.
  __device__ __forceinline__ void begin(const GemmParams& params, int row, int k) {
    w_ = (static_cast<uint32_t>(k / kBlock) * params.packed_n + row + this->first_row()) * kBlock +
         k % kBlock + this->first_chunk() * 16;
    second_half_ = k % kBlock != 0;
  }
  // Copy i of a stage, if there is one. Past the end of k there are zeros.
  __device__ __forceinline__ void copy(const GemmParams& params, int i, bool wanted, uint32_t to) {
    const int place = i * this->kRowStep;
    const bool in_tile = T.n % this->kRowStep == 0 || this->first_row() + place < T.n;
    ptx::cp_async_16_if(wanted && in_tile, to, params.w + w_ + place * kBlock);
  }
  __device__ __forceinline__ void end_stage(const GemmParams& params) {
    const uint32_t to_next_block = static_cast<uint32_t>(params.packed_n) * kBlock;
    if constexpr (T.k == kBlock) {
      w_ += to_next_block;
    } else {
      w_ += second_half_ ? to_next_block - T.k : T.k;
      second_half_ = !second_half_;
    }
  }
  __device__ __forceinline__ void pass_end_of_k() {}

 private:
  static constexpr int kBlock = kBlockBytes;  // bytes of a row of packed w
  static_assert(T.n * kBlock <= kReadPast, "the last tile reads past the last row");

  uint32_t w_ = 0;            // from params.w on: one register less than a pointer
  bool second_half_ = false;  // of a block of w, when a stage takes half a block
};

// And of one in plain rows. Place 32 g + 8 j + 2 a + b of a tile is row 32 g + 8 a + 2 j + b of w,
// or with gate and up (b) apart, n / 2 b + 16 g + 4 a + j. The copies of a thread differ only in g
// and j, so they are at multiples of one distance.
template <Tile T, bool kGated>
class PlainRows : CopyShare<T> {
 public:
  __device__ explicit PlainRows(const GemmParams& params) {
    if constexpr (kKeepsStride) {
      stride_ = ptx::keep_in_register<1>(static_cast<uint32_t>(params.w_stride));
    }
  }

  __device__ __forceinline__ void begin(const GemmParams& params, int row, int k) {
    const int place = row + this->first_row();
    const int a = place / 2 % 4, j = place / 8 % 4, b = place % 2;
    const int from = kGated ? b * (params.n / 2) + place / 32 * 16 + a * 4 + j
                            : place / 32 * 32 + a * 8 + j * 2 + b;
    w_ = from * static_cast<uint32_t>(params.w_stride) + k + this->first_chunk() * 16;
    copies_ = (params.n - place + this->kRowStep - 1) / this->kRowStep;  // of rows that exist
  }
  __device__ __forceinline__ void copy(const GemmParams& params, int i, bool, uint32_t to) {
    const int place = i * this->kRowStep;
    const int steps = (place / 32 * 16 + place % 32 / 8) * (kGated ? 1 : 2);
    const uint32_t stride = kKeepsStride ? stride_ : static_cast<uint32_t>(params.w_stride);
    ptx::cp_async_16_or_zeros(i < copies_, to, params.w + w_ + uint64_t{stride} * steps);
  }
  __device__ __forceinline__ void end_stage(const GemmParams&) { w_ += T.k; }
  // Nothing is read any more in this tile.
  __device__ __forceinline__ void pass_end_of_k() { copies_ = 0; }

 private:
  static constexpr int kStep = CopyShare<T>::kRowStep;
  static_assert(T.n % kStep == 0, "zeros must not be written past the tile");
  static_assert(32 % kStep == 0 || kStep % 32 == 0, "copies must differ only in g and j");

  // Like stride_a_, unless four warps have the accumulators of a large tile: there ptxas (13.0)
  // spills with it, and in tiles of eight warps without it.
  static constexpr bool kKeepsStride = T.threads() >= 256;
  uint32_t stride_ = 0;
  uint32_t w_ = 0;
  int copies_ = 0;
};

template <Tile T, class Rows>
class Loader : CopyShare<T> {
  using Share = CopyShare<T>;

 public:
  // `stages`: address of the first of T.stages.
  __device__ Loader(const GemmParams& params, uint32_t stages)
      : to_(stages + Share::first_row() * T.k +
            (Share::first_chunk() ^ swizzle<T>(Share::first_row())) * 16),
        stride_a_(ptx::keep_in_register<0>(static_cast<uint32_t>(params.a_stride))),
        w_(params) {}

  // Part `kPart` of `kParts` of the next stage's copies, into `slot`.
  template <int kPart, int kParts>
  __device__ __forceinline__ void copy_part(const GemmParams& params, uint32_t slot) {
    constexpr int kCopies = Share::kCopiesA + Share::kCopiesW;
    const uint32_t to = to_ + slot * T.stage_bytes();
    if constexpr (kPart == 0) begin_stage(params);
#pragma unroll
    for (int i = kCopies * kPart / kParts; i < kCopies * (kPart + 1) / kParts; ++i) {
      if (i < Share::kCopiesA) {
        ptx::cp_async_16_if(i < copies_a_, to + i * Share::kRowStep * T.k,
                            params.a + a_ + uint64_t{stride_a_} * (i * Share::kRowStep));
      } else {
        const int copy = i - Share::kCopiesA;
        w_.copy(params, copy, left_ >= 2, to + (T.m + copy * Share::kRowStep) * T.k);
      }
    }
  }

  // After the last part.
  __device__ __forceinline__ void end_stage(const GemmParams& params) {
    a_ += T.k;
    w_.end_stage(params);
    left_ = max(left_ - 2, 0);
    if (left_ == 3) pass_end_of_k();
  }

 private:
  // The rest of this tile is past the end of k for this thread: w is zero, so a may be whatever is
  // left in the stage.
  __device__ __forceinline__ void pass_end_of_k() {
    copies_a_ = 0;
    w_.pass_end_of_k();
  }

  __device__ __forceinline__ void begin_stage(const GemmParams& params) {
    if (left_ >= 2) return;
    Work work;
    if (!list_.next(params, work)) {  // this stage and those that follow stay empty
      pass_end_of_k();
      return;
    }
    const TilePlace place = place_of(params, work.tile);
    const int row_a = place.row * T.m + Share::first_row();
    const int k = work.k_begin * T.k;
    a_ = row_a * stride_a_ + k + Share::first_chunk() * 16;
    w_.begin(params, place.column * T.n, k);
    const int rows = min(T.m - Share::first_row(), params.m - row_a);
    copies_a_ = (rows + Share::kRowStep - 1) / Share::kRowStep;
    const bool past_k = work.k_end * T.k - T.k + Share::first_chunk() * 16 >= params.k;
    left_ = 2 * (work.k_end - work.k_begin) + (past_k ? 1 : 0);
    if (left_ == 3) pass_end_of_k();
  }

  WorkList<1> list_;
  uint32_t to_;        // where this thread's first copy goes in slot 0
  uint32_t stride_a_;  // loaded from the constants for each copy, it would stall the warp
  uint32_t a_ = 0;     // from params.a on: one register less than a pointer
  int copies_a_ = 0;   // of rows that exist
  Rows w_;
  // Twice the stages left of the current work, plus one when this thread's chunk of the last of
  // them lies past the end of k: two registers would be one too many.
  int left_ = 0;
};

}  // namespace octet::cuda
