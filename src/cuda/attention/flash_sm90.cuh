// Attention in one kernel for Hopper (sm_90a): wgmma and TMA, scores never leave the registers.
//
// One warp fetches (TMA), warpgroups multiply. A warpgroup owns 64 rows of q and all columns of
// their output. For each block of keys it issues the next scores S = Q K^T and, behind them, the
// product P V of the block before; while the tensor cores work on the latter it makes weights of
// the former. What wgmma leaves in a lane's registers as S is what it wants there as P.
//
// The order of things, and tiles of 128 x 80 with the weights in registers for heads of 256, follow
// FlashAttention-3 (arXiv 2407.08608). How this came to be as it is, with all measurements:
// docs/kernels/attention.md.
#pragma once

#include "cuda/attention/flash_merge_sm90.cuh"
#include "cuda/attention/flash_params_sm90.h"
#include "cuda/attention/flash_tile_sm90.h"
#include "cuda/attention/online_softmax.cuh"
#include "cuda/attention/scores.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/named_barrier.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/ptx/shared.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/ptx/wgmma_bf16.cuh"
#include "cuda/ptx/wgmma_s8.cuh"
#include "cuda/rows/row_ptx.cuh"
#include "cuda/tma_ring.cuh"
#include "cuda/work_list.cuh"

namespace octet::cuda {

// Rings of keys and of values; all warps of all blocks of a cluster read a slot.
template <HopperFlashTile T>
using KeyRing = TmaRing<T.stages, T.k_bytes(), T.k_barriers() - T.k_place(),
                        4 * T.groups * T.cluster, T.cluster>;
template <HopperFlashTile T>
using ValueRing = TmaRing<T.stages, T.v_bytes(), T.v_barriers() - T.v_place(),
                          4 * T.groups * T.cluster, T.cluster>;
// The rows of q: one slot, no part of which is anybody else's.
template <HopperFlashTile T>
using QueryRing = TmaRing<1, T.q_bytes(), T.q_barriers(), 4 * T.groups, 1>;

// Where this block's part of a worker's tile is.
template <HopperFlashTile T>
struct FlashPlace {
  int head, row;
  int rank = 0;  // in the cluster

  __device__ FlashPlace(const HopperFlashParams& params, int tile) {
    int index;
    if (params.causal) {  // rows that see the most keys first: the last tiles to run are short
      index = params.tiles_per_head - 1 - tile / params.heads;
      head = tile % params.heads;
    } else {  // tiles of one head at about the same time: its keys and values stay in the L2
      head = tile / params.tiles_per_head;
      index = tile % params.tiles_per_head;
    }
    if constexpr (T.cluster > 1) rank = static_cast<int>(ptx::cluster_rank());
    row = (index * T.cluster + rank) * T.rows();
  }
};

// The next part of a tile; of a causal one the blocks that its last row sees.
template <HopperFlashTile T>
__device__ __forceinline__ bool next_work(const HopperFlashParams& params,
                                          WorkList<T.cluster>& list, Work& work) {
  if (!list.next(params, work)) return false;
  if (params.causal) {
    const int index = params.tiles_per_head - 1 - work.tile / params.heads;
    const int visible = (index + 1) * T.cluster * T.rows();
    work.k_end = min(work.k_end, (visible + T.keys - 1) / T.keys);
  }
  return true;
}

// By one thread.
template <HopperFlashTile T>
__device__ __forceinline__ void fetch_operands(const HopperFlashParams& params,
                                               const FlashMaps& maps, uint32_t shared) {
  constexpr int kScoreBoxes = T.score_boxes() / T.cluster;  // that this block fetches
  constexpr int kValueBoxes = T.value_boxes() / T.cluster;
  constexpr auto kAll = static_cast<uint16_t>((1 << T.cluster) - 1);
  QueryRing<T> queries(shared);
  uint32_t count = 0;  // blocks of keys so far
  WorkList<T.cluster> list;
  Work work;
  while (next_work<T>(params, list, work)) {
    const FlashPlace<T> place(params, work.tile);
    queries.acquire(T.q_bytes());
    ptx::tma_load<false>(queries.stage(), &maps.q, queries.full(), 0, place.row,
                         place.head * T.score_boxes(), 0);
    queries.advance();
    const int kv_head = place.head / params.sharing;
    int key = work.k_begin * T.keys;
    // In the order in which they are read: keys are a block ahead of values.
#pragma unroll 1
    for (int left = work.k_end - work.k_begin; left >= 0; --left, key += T.keys) {
      if (left > 0) {
        const KeyRing<T> keys(shared + T.k_place(), count);
        // Scales end with the last key, but for the 16 bytes that it is part of: TMA takes no less.
        const uint32_t scale_bytes = T.int8 ? min(T.keys * 4, (params.keys - key + 3) / 4 * 16) : 0;
        keys.acquire(T.k_bytes() + scale_bytes);
        ptx::tma_load<(T.cluster > 1)>(
            keys.stage() + place.rank * kScoreBoxes * T.keys * T.kRowBytes, &maps.k, keys.full(), 0,
            key, kv_head * T.score_boxes() + place.rank * kScoreBoxes, kAll);
        if constexpr (T.int8) {
          ptx::bulk_load(shared + T.scale_place() + keys.slot * T.scale_bytes(),
                         params.k_scale + kv_head * params.k_scale_stride + key, scale_bytes,
                         keys.full());
        }
        ++count;
      }
      if (key > work.k_begin * T.keys) {
        const ValueRing<T> values(shared + T.v_place(), left > 0 ? count - 2 : count - 1);
        values.acquire(T.v_bytes());
        ptx::tma_load<(T.cluster > 1)>(
            values.stage() + place.rank * kValueBoxes * T.keys * T.kRowBytes, &maps.v,
            values.full(), 0, key - T.keys, kv_head * T.value_boxes() + place.rank * kValueBoxes,
            kAll);
      }
    }
  }
}

// One warpgroup's 64 rows. A lane, g = lane / 4 and t = lane % 4, has of eight columns those
// numbered 2 t and 2 t + 1, of rows g (elements 0, 1) and g + 8 (2, 3) of its warp's 16.
template <HopperFlashTile T>
class FlashGroup {
 public:
  static constexpr int kScoreBlocks = T.keys / 8, kValueBlocks = T.head_dim / 8;

  __device__ FlashGroup(const HopperFlashParams& params, uint32_t shared, int group)
      : params_(params), shared_(shared), group_(group), queries_(shared) {
    // The first turn is the first one's; from there on they pass it on.
    if (T.alternates && group + 1 == T.groups) ptx::named_arrive(turn_barrier(0), 256);
  }

  // Weighs the values of a part of a tile's keys.
  __device__ __forceinline__ void run(const Work& work, int head, int first_row) {
    softmax_ = {};
#pragma unroll
    for (auto& block : acc_) block[0] = block[1] = block[2] = block[3] = 0;
    const int warp_row = first_row + group_ * 64 + static_cast<int>(threadIdx.x / 32 % 4) * 16;
    float scale_log2[2] = {params_.scale_log2, params_.scale_log2};
    if constexpr (T.int8) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = warp_row + static_cast<int>(threadIdx.x % 32 / 4) + 8 * h;
        const float q_scale =
            row < params_.rows ? params_.q_scale[head * params_.q_scale_stride + row] : 0;
        scale_log2[h] = row_scale_log2(q_scale, params_.scale_log2);
      }
    }
    const int fewest = params_.causal ? min(params_.keys, warp_row + 1) : params_.keys;
    float rescale[2];
    const auto weigh = [&](float(&scores)[kScoreBlocks][4], int block) {
      if ((block + 1) * T.keys > fewest) mask(scores, block * T.keys, first_row);
      softmax_.update(scores, scale_log2, rescale);
    };

    Scores scores;
    uint32_t p[T.keys / 16][4];
    const uint32_t before = count_ - work.k_begin;  // of slots, so that block b is at before + b
    queries_.wait();
    {
      const KeyRing<T> keys(shared_ + T.k_place(), before + work.k_begin);
      issue_scores(keys, scores);
      ptx::wgmma_wait<0>();
      take_scores(keys, scores);
      weigh(scores.values(), work.k_begin);
      pack(scores.values(), p);
    }
#pragma unroll 1
    for (int block = work.k_begin + 1; block < work.k_end; ++block) {
      const KeyRing<T> keys(shared_ + T.k_place(), before + block);
      const ValueRing<T> values(shared_ + T.v_place(), before + block - 1);
      if constexpr (T.alternates) wait_turn();
      issue_scores(keys, scores);
      rescale_accumulators(acc_, rescale);
      issue_values(values, p);
      if constexpr (T.alternates) pass_turn();
      ptx::wgmma_wait<1>();
      take_scores(keys, scores);
      weigh(scores.values(), block);
      ptx::wgmma_wait<0>();
      ptx::wgmma_pin(acc_);
      ValueRing<T>::release(values.empty());
      pack(scores.values(), p);
    }
    QueryRing<T>::release(queries_.empty());
    queries_.advance();
    const ValueRing<T> values(shared_ + T.v_place(), before + work.k_end - 1);
    rescale_accumulators(acc_, rescale);
    issue_values(values, p);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(acc_);
    ValueRing<T>::release(values.empty());
    count_ += work.k_end - work.k_begin;
  }

  // False where another worker has the rest.
  __device__ bool merge(const Work& work, uint32_t* arrived) {
    const int rank = T.cluster == 1 ? 0 : static_cast<int>(ptx::cluster_rank());
    const FlashMerge<T.groups * T.cluster, T.cluster, kValueBlocks> merge{
        params_, rank * T.groups + group_, arrived, 1 + group_};
    return merge.run(work, softmax_, acc_);
  }

  // The four lanes of a row exchange their words, so that each stores 16 bytes: 64 in a row.
  __device__ __forceinline__ void store(int head, int first_row) {
    const unsigned thread = ptx::thread_read_anew();
    const int lane = static_cast<int>(thread % 32), t = lane % 4;
    const int warp_row = first_row + group_ * 64 + static_cast<int>(thread / 32 % 4) * 16;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = warp_row + lane / 4 + 8 * h;
      const float inverse = softmax_.inverse_total(h);
      std::byte* out = params_.out + row * params_.out_stride + (head * T.head_dim + 8 * t) * 2;
#pragma unroll
      for (int j = 0; j < kValueBlocks; j += 4) {
        uint32_t w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          w[i] = pack_bf16(__fmul_rn(acc_[j + i][2 * h], inverse),
                           __fmul_rn(acc_[j + i][2 * h + 1], inverse));
        }
        transpose_among_four(w, t);
        if (row < params_.rows) store_vector(out + j * 16, make_uint4(w[0], w[1], w[2], w[3]));
      }
    }
  }

 private:
  using Scores = ScoresOf<T.int8, kScoreBlocks>;

  // Q K^T of a block of keys.
  __device__ __forceinline__ void issue_scores(const KeyRing<T>& keys, Scores& scores) const {
    constexpr int kSteps = T.score_boxes() * 4;  // of 32 bytes
    const uint32_t q = ptx::wgmma_operand(shared_ + group_ * 64 * T.kRowBytes);
    const uint32_t k = ptx::wgmma_operand(keys.stage());
    if constexpr (T.int8) scores.begin();
    keys.wait();
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int box = step / 4, byte = step % 4 * 32;
      const uint32_t q_step = q + (box * T.rows() * T.kRowBytes + byte) / 16;
      const uint32_t k_step = k + (box * T.keys * T.kRowBytes + byte) / 16;
      if constexpr (T.int8) {
        ptx::wgmma_64xNx32(scores.sums, q_step, k_step, true);
      } else {
        ptx::wgmma_64xNx16(scores.scores, q_step, k_step, step > 0);
      }
    }
    ptx::wgmma_commit();
  }

  // When they are there: as numbers, and the keys can go.
  __device__ __forceinline__ void take_scores(const KeyRing<T>& keys, Scores& scores) const {
    ptx::wgmma_pin(scores.raw());
    if constexpr (T.int8) {
      scores.scale(shared_ + T.scale_place() + keys.slot * T.scale_bytes());
      __syncwarp();  // all lanes have their scales
    }
    KeyRing<T>::release(keys.empty());
  }

  // Takes away what a row does not see of the keys from `first_key` on.
  __device__ __forceinline__ void mask(float (&scores)[kScoreBlocks][4], int first_key,
                                       int first_row) const {
    const auto thread = static_cast<int>(ptx::thread_read_anew());
    const int row = first_row + group_ * 64 + thread / 32 % 4 * 16 + thread % 32 / 4;
    const int most = params_.keys - first_key;
    const int ends[2] = {params_.causal ? min(most, row + 1 - first_key) : most,
                         params_.causal ? min(most, row + 9 - first_key) : most};
    mask_scores(scores, ends);
  }

  // acc_ += P V of a block of values.
  __device__ __forceinline__ void issue_values(const ValueRing<T>& values,
                                               const uint32_t (&p)[T.keys / 16][4]) {
    const uint32_t v = ptx::wgmma_operand_of_columns(values.stage(), T.keys * T.kRowBytes);
    values.wait();
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < T.keys / 16; ++step) {
      ptx::wgmma_64xNx16_add(acc_, p[step], v + step * 16 * T.kRowBytes / 16);
    }
    ptx::wgmma_commit();
  }

  __device__ __forceinline__ static void pack(const float (&weights)[kScoreBlocks][4],
                                              uint32_t (&p)[T.keys / 16][4]) {
#pragma unroll
    for (int step = 0; step < T.keys / 16; ++step) {
      const float(&low)[4] = weights[2 * step];
      const float(&high)[4] = weights[2 * step + 1];
      p[step][0] = pack_bf16(low[0], low[1]);
      p[step][1] = pack_bf16(low[2], low[3]);
      p[step][2] = pack_bf16(high[0], high[1]);
      p[step][3] = pack_bf16(high[2], high[3]);
    }
  }

  // w[i] of lane t of four becomes w[t] of lane i.
  __device__ __forceinline__ static void transpose_among_four(uint32_t (&w)[4], int t) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const uint32_t got = __shfl_xor_sync(~0u, t & 1 ? w[i] : w[i + 1], 1);
      (t & 1 ? w[i] : w[i + 1]) = got;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t got = __shfl_xor_sync(~0u, t & 2 ? w[i] : w[i + 2], 2);
      (t & 2 ? w[i] : w[i + 2]) = got;
    }
  }

  __device__ static int turn_barrier(int group) { return 1 + T.groups + group; }
  __device__ void wait_turn() const { ptx::named_sync(turn_barrier(group_), 256); }
  __device__ void pass_turn() const {
    ptx::named_arrive(turn_barrier(group_ + 1 == T.groups ? 0 : group_ + 1), 256);
  }

  const HopperFlashParams& params_;
  uint32_t shared_;
  int group_;
  QueryRing<T> queries_;
  uint32_t count_ = 0;  // blocks of keys before this work
  OnlineSoftmax softmax_;
  float acc_[kValueBlocks][4];
};

template <HopperFlashTile T>
__device__ __forceinline__ void run_flash(const HopperFlashParams& params, const FlashMaps& maps) {
  static_assert(T.is_sound(), "this tile breaks a rule of HopperFlashTile::is_sound()");
  extern __shared__ __align__(1024) std::byte shared_bytes[];
  const uint32_t shared = ptx::shared_address(shared_bytes);
  if (threadIdx.x == 0) {
    QueryRing<T>(shared).init();
    KeyRing<T>(shared + T.k_place()).init();
    ValueRing<T>(shared + T.v_place()).init();
    ptx::mbarrier_publish_init();
  }
  if constexpr (T.cluster > 1) {
    ptx::cluster_meet();
  } else {
    __syncthreads();
  }
  // From one lane: then the compiler knows that a warp's are the same.
  const int group = static_cast<int>(__shfl_sync(~0u, threadIdx.x / 128, 0));
  if (group == T.groups) {
    ptx::give_registers_away<T.fetch_registers()>();
    if (threadIdx.x == 128 * T.groups) fetch_operands<T>(params, maps, shared);
    __syncwarp();
  } else {
    ptx::take_registers<T.registers()>();
    auto* arrived = reinterpret_cast<uint32_t*>(shared_bytes + T.words()) + group;
    FlashGroup<T> rows(params, shared, group);
    WorkList<T.cluster> list;
    Work work;
    while (next_work<T>(params, list, work)) {
      const FlashPlace<T> place(params, work.tile);
      rows.run(work, place.head, place.row);
      const bool whole = params.causal || work.k_end - work.k_begin == params.k_steps;
      if (whole || rows.merge(work, arrived)) rows.store(place.head, place.row);
    }
  }
  // Nobody leaves while the other block may still arrive at its barriers.
  if constexpr (T.cluster > 1) ptx::cluster_sync();
}

}  // namespace octet::cuda
