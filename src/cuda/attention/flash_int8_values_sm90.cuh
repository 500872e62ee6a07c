// A warpgroup that weighs INT8 values, with weights in 8 bits.
//
// The sums of a product P V are integers, which cannot stay in the tensor cores' accumulators from
// one block of keys to the next: each row and block has its own scale. They are processed in slices
// of 64 channels and added to f32 accumulators, one slice while the tensor cores work on the next.
// Scores, slices and accumulators do not fit into the registers together, so a warpgroup's softmax
// does not overlap with its own products; those of the other warpgroup fill the time.
#pragma once

#include "cuda/attention/coded_softmax.cuh"
#include "cuda/attention/flash_rows_sm90.cuh"

namespace octet::cuda {

template <HopperFlashTile T>
class Int8ValueRows : public FlashRows<T, CodedSoftmax> {
  using Base = FlashRows<T, CodedSoftmax>;
  using Base::acc_, Base::count_, Base::params_, Base::queries_, Base::shared_, Base::softmax_;
  using typename Base::Scores;

 public:
  using Base::Base;

  // Weighs the values of a part of a tile's keys. A turn is the products of a block's values and of
  // the next one's scores.
  __device__ __forceinline__ void run(const Work& work, int head, int first_row) {
    this->clear();
    float scale_log2[2];
    this->load_scales(head, first_row, scale_log2);
    const int value_scales = head / params_.sharing * params_.v_scale_stride;
    const uint32_t before = count_ - work.k_begin;  // of slots, so that block b is at before + b
    float scores[Base::kScoreBlocks][4];
    const auto multiply = [&](int block, auto&& meanwhile) {
      Scores next;
      const KeyRing<T> keys(shared_ + T.k_place(), before + block);
      this->issue_scores(keys, next);
      meanwhile();
      ptx::wgmma_wait<0>();
      this->take_scores(keys, next);
#pragma unroll
      for (int j = 0; j < Base::kScoreBlocks; ++j) {
#pragma unroll
        for (int c = 0; c < 4; ++c) scores[j][c] = next.values()[j][c];
      }
    };
    queries_.wait();
    multiply(work.k_begin, [] {});
    int block = work.k_begin;
#pragma unroll 1
    while (true) {
      const ValueRing<T> values(shared_ + T.v_place(), before + block);
      const bool last = block + 1 == work.k_end;
      if (last) QueryRing<T>::release(queries_.empty());
      // Read again: there is no register to keep it in.
      if ((block + 1) * T.keys > this->fewest_keys(first_row, ptx::thread_read_anew())) {
        this->mask(scores, block * T.keys, first_row);
      }
      float rescale[2], factor[2];
      uint32_t codes[T.keys / 32][4];
      softmax_.update(scores, scale_log2, __ldg(params_.v_scale + value_scales + block), rescale,
                      factor, codes);
      values.wait();
      if constexpr (T.alternates) this->wait_turn();
      add_values(values, codes, rescale, factor);
      if (last) break;
      multiply(++block, [&] {
        if constexpr (T.alternates) this->pass_turn();
      });
    }
    if constexpr (T.alternates) this->pass_turn();
    queries_.advance();
    count_ = before + work.k_end;
    softmax_.take_excess(acc_);
  }

 private:
  static constexpr int kSliceBlocks = 8;  // of eight channels
  static constexpr int kSlices = Base::kValueBlocks / kSliceBlocks;
  using Sums = int32_t[kSliceBlocks][4];

  // acc_ = acc_ * rescale + P V * factor of a block of values.
  __device__ __forceinline__ void add_values(const ValueRing<T>& values,
                                             const uint32_t (&codes)[T.keys / 32][4],
                                             const float (&rescale)[2], const float (&factor)[2]) {
    Sums sums[2];
    const uint32_t v = ptx::wgmma_operand(values.stage());
    issue_slice(v, 0, codes, sums[0]);
    issue_slice(v, 1, codes, sums[1]);
    rescale_accumulators(acc_, rescale);
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      if (slice + 1 < kSlices) {
        ptx::wgmma_wait<1>();
      } else {
        ptx::wgmma_wait<0>();
        ValueRing<T>::release(values.empty());
      }
      Sums& done = sums[slice % 2];
      ptx::wgmma_pin(done);
#pragma unroll
      for (int j = 0; j < kSliceBlocks; ++j) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          float& acc = acc_[slice * kSliceBlocks + j][c];
          acc = __fmaf_rn(__int_as_float(done[j][c]), factor[c / 2], acc);
        }
      }
      if (slice + 2 < kSlices) issue_slice(v, slice + 2, codes, done);
    }
  }

  __device__ __forceinline__ static void issue_slice(uint32_t v, int slice,
                                                     const uint32_t (&codes)[T.keys / 32][4],
                                                     Sums& sums) {
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < T.keys / 32; ++step) {
      ptx::wgmma_64xNx32_u8(sums, codes[step],
                            v + (slice * kSliceBlocks * 8 * T.kRowBytes + step * 32) / 16,
                            step > 0);
    }
    ptx::wgmma_commit();
  }
};

}  // namespace octet::cuda
