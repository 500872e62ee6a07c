// Attention in one kernel, for sm_80 and everything newer: scores never leave the registers.
//
// A warp owns 16 rows of q and all columns of their output. For each block of keys it computes the
// scores S = Q K^T, moves its running maximum, P = 2^(S - maximum) (rounded to BF16), and
// adds P V to the output, which is divided by the sum of P at the end. What mma.sync leaves in
// a lane's registers as S has the layout that it takes as P, so P needs no exchange.
#pragma once

#include "cuda/attention/flash_ring_sm80.cuh"
#include "cuda/attention/flash_warp_sm80.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/ptx/shared.cuh"

namespace octet::cuda {

// A block's head of q: number blockIdx.y of those that read head blockIdx.z of k and v.
__device__ __forceinline__ int flash_head(const uint3& block) {
  return static_cast<int>(block.z * gridDim.y + block.y);
}
// Rows that see the most keys first: the last blocks to run are then short.
template <FlashTile T>
__device__ __forceinline__ int first_flash_row(const FlashParams& params, const uint3& block) {
  return static_cast<int>(params.causal ? gridDim.x - 1 - block.x : block.x) * T.rows;
}

// A block's work.
template <FlashTile T>
__device__ __forceinline__ void run_flash(const FlashParams& params) {
  static_assert(T.is_sound(), "this tile breaks a rule of FlashTile::is_sound()");
  // Chunks are addressed by exclusive or, so rows begin at multiples of their size.
  extern __shared__ __align__(1024) std::byte shared_bytes[];
  const uint32_t shared = ptx::shared_address(shared_bytes);
  const int first_row = first_flash_row<T>(params, blockIdx);
  const int head = flash_head(blockIdx);
  const int visible = params.causal ? min(params.keys, first_row + T.rows) : params.keys;
  const int key_blocks = (visible + T.keys - 1) / T.keys;
  const uint32_t q = shared + T.q_place();
  {
    const ScoreCopies<T> copies;
    const int row = first_row + copies.row;
    copies.template copy<T.rows>(q,
                                 params.q + row * params.q_stride +
                                     int64_t{head} * score_head_bytes<T>(params) +
                                     copies.chunk * 16,
                                 params.q_stride, params.rows - row, score_head_bytes<T>(params));
  }
  FlashRing<T> ring(params, shared, static_cast<int>(blockIdx.z), key_blocks);
  ring.begin(params);
  FlashWarp<T> warp(q);
  if constexpr (T.keeps_queries()) {
    ring.wait_for_first();
    warp.load_queries();
    __syncthreads();  // from here on the last slot is V's
  }
  const int warp_row = first_row + static_cast<int>(threadIdx.x) / 32 * 16;
  float scale_log2[2] = {params.scale_log2, params.scale_log2};
  if constexpr (T.int8) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * h;
      const float q_scale =
          row < params.rows ? params.q_scales[head * params.q_scale_stride + row] : 0;
      scale_log2[h] = row_scale_log2(q_scale, params.scale_log2);
    }
  }
#pragma unroll 1
  for (int key_block = 0; key_block < key_blocks; ++key_block) {
    warp.multiply_keys(ring.template next<0>(params, key_block));
    if constexpr (T.int8) warp.scale(ring.scales());
    ring.leave();
    const int first_key = key_block * T.keys;
    const int fewest = params.causal ? min(params.keys, warp_row + 1) : params.keys;
    if (first_key + T.keys > fewest) {
      const int row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4;
      const int most = params.keys - first_key;
      warp.mask({params.causal ? min(most, row + 1 - first_key) : most,
                 params.causal ? min(most, row + 9 - first_key) : most});
    }
    warp.weigh(scale_log2);
    const uint32_t values = ring.template next<1>(params, key_block);
    warp.multiply_values(values);
    ring.leave();
  }
  if constexpr (T.keeps_queries()) __syncthreads();  // no warp reads the ring any more
  // Its address is computed here rather than kept.
  const uint3 block = ptx::block_read_anew();
  const int out_row =
      first_flash_row<T>(params, block) + static_cast<int>(ptx::thread_read_anew() / 32) * 16;
  warp.store(shared_bytes,
             params.out + out_row * params.out_stride +
                 int64_t{flash_head(block)} * value_head_bytes<T>(params),
             params.out_stride, params.rows - out_row, value_head_bytes<T>(params));
}

}  // namespace octet::cuda
