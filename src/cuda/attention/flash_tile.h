// What a block of the fused attention kernel works on, and its arguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octet::cuda {

// A block has `rows` rows of q of one head, 16 per warp, and meets `keys` keys at a time. K and V
// pass through a ring of `stages` buffers, each of which holds one such chunk of K or of V.
struct FlashTile {
  int head_dim;  // the most; what is missing to it is zeros
  int rows;
  int keys;
  int stages;

  constexpr int warps() const { return rows / 16; }
  constexpr int threads() const { return warps() * 32; }
  constexpr int row_bytes() const { return head_dim * 2; }
  constexpr int q_bytes() const { return rows * row_bytes(); }
  constexpr int stage_bytes() const { return keys * row_bytes(); }
  constexpr int shared_bytes() const {
    constexpr int kBarrierBytes = 16;  // of a stage: full, empty
    return q_bytes() + stages * (stage_bytes() + kBarrierBytes);
  }
};

struct FlashParams {
  const std::byte *q, *k, *v;  // BF16, rows 16-byte aligned
  std::byte* out;
  int64_t q_stride, k_stride, v_stride, out_stride;  // in bytes
  int rows, keys;
  int head_bytes;    // of one head's part of a row
  int sharing;       // heads of q that read the same one of k and v
  float scale_log2;  // log2(e) / sqrt(head_dim)
  bool causal;
};

}  // namespace octet::cuda
