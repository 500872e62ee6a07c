// What a block of the fused attention kernel works on, and its arguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octet::cuda {

// A block has `rows` rows of q of one head, 16 per warp, and meets `keys` keys at a time. K and V
// pass through a ring of `stages` slots, each of which holds one such chunk of K or of V.
struct FlashTile {
  int head_dim;  // the most, smaller heads are padded with zeros; in INT8 exactly this
  int rows;
  int keys;
  int stages;
  int blocks;  // on a multiprocessor
  bool int8;   // scores are products of INT8; values are BF16

  constexpr int warps() const { return rows / 16; }
  constexpr int threads() const { return warps() * 32; }
  // Of a row of q and k, and of v.
  constexpr int score_row_bytes() const { return head_dim * (int8 ? 1 : 2); }
  constexpr int value_row_bytes() const { return head_dim * 2; }
  constexpr int q_bytes() const { return rows * score_row_bytes(); }
  constexpr int k_bytes() const { return keys * score_row_bytes(); }
  constexpr int v_bytes() const { return keys * value_row_bytes(); }
  constexpr int scale_bytes() const { return int8 ? keys * 4 : 0; }

  // Whether fragments of q stay in registers, where only those of INT8 fit. Then q passes through
  // the last slot of V, and the result through the ring.
  constexpr bool keeps_queries() const { return int8; }

  // Shared memory: q, slots, scales of the keys, barriers. If K and V differ in size, their slots
  // alternate.
  constexpr int q_place() const { return keeps_queries() ? slot_place(stages - 1) : 0; }
  constexpr int slot_place(int slot) const {
    return (keeps_queries() ? 0 : q_bytes()) + (slot + 1) / 2 * k_bytes() + slot / 2 * v_bytes();
  }
  constexpr int scale_place() const { return slot_place(stages); }
  constexpr int barrier_place() const { return scale_place() + stages / 2 * scale_bytes(); }
  constexpr int shared_bytes() const {
    constexpr int kBarrierBytes = 16;  // of a stage: full, empty
    return barrier_place() + stages * kBarrierBytes;
  }

  constexpr bool is_sound() const {
    const bool fits = !keeps_queries() ||
                      (q_bytes() <= v_bytes() && rows * value_row_bytes() <= slot_place(stages));
    return rows % 16 == 0 && keys % 16 == 0 && stages >= 2 && fits &&
           (k_bytes() == v_bytes() || stages % 2 == 0);
  }
};

struct FlashParams {
  const std::byte *q, *k, *v;  // rows 16-byte aligned; out BF16, the others as the tile says
  std::byte* out;
  int64_t q_stride, k_stride, v_stride, out_stride;  // in bytes
  int rows, keys;
  int head_bytes;    // of one head's part of a row of v
  float scale_log2;  // log2(e) / sqrt(head_dim)
  bool causal;
  const float *q_scales, *k_scales;  // in INT8: [heads, rows] and [kv_heads, keys]
  int64_t q_scale_stride, k_scale_stride;
};

}  // namespace octet::cuda
