// A warpgroup that weighs BF16 values.
//
// For each block of keys it issues the next scores S = Q K^T and, after them, the product P V of
// the previous block; while the tensor cores work on the latter it turns the former into weights.
// The layout in which wgmma leaves S in a lane's registers is the one in which it takes P.
//
// The order of work, and tiles of 128 x 80 with the weights in registers for heads of 256, follow
// FlashAttention-3 (arXiv 2407.08608).
#pragma once

#include "cuda/attention/flash_rows_sm90.cuh"

namespace octet::cuda {

template <HopperFlashTile T>
class Bf16ValueRows : public FlashRows<T, OnlineSoftmax> {
  using Base = FlashRows<T, OnlineSoftmax>;
  using Base::acc_, Base::count_, Base::queries_, Base::shared_, Base::softmax_;
  using typename Base::Scores;

 public:
  using Base::Base;

  // Weighs the values of a part of a tile's keys.
  __device__ __forceinline__ void run(const Work& work, int head, int first_row) {
    this->clear();
    float scale_log2[2];
    this->load_scales(head, first_row, scale_log2);
    const int fewest = this->fewest_keys(first_row, threadIdx.x);
    float rescale[2];
    const auto weigh = [&](float(&scores)[Base::kScoreBlocks][4], int block) {
      if ((block + 1) * T.keys > fewest) this->mask(scores, block * T.keys, first_row);
      softmax_.update(scores, scale_log2, rescale);
    };

    Scores scores;
    uint32_t p[T.keys / 16][4];
    const uint32_t before = count_ - work.k_begin;  // of slots, so that block b is at before + b
    queries_.wait();
    {
      const KeyRing<T> keys(shared_ + T.k_place(), before + work.k_begin);
      this->issue_scores(keys, scores);
      ptx::wgmma_wait<0>();
      this->take_scores(keys, scores);
      weigh(scores.values(), work.k_begin);
      pack(scores.values(), p);
    }
#pragma unroll 1
    for (int block = work.k_begin + 1; block < work.k_end; ++block) {
      const KeyRing<T> keys(shared_ + T.k_place(), before + block);
      const ValueRing<T> values(shared_ + T.v_place(), before + block - 1);
      if constexpr (T.alternates) this->wait_turn();
      this->issue_scores(keys, scores);
      rescale_accumulators(acc_, rescale);
      issue_values(values, p);
      if constexpr (T.alternates) this->pass_turn();
      ptx::wgmma_wait<1>();
      this->take_scores(keys, scores);
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

 private:
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

  __device__ __forceinline__ static void pack(const float (&weights)[Base::kScoreBlocks][4],
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
};

}  // namespace octet::cuda
