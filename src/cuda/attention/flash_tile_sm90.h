// A row of the table of Hopper's attention kernels, and everything derived from it.
#pragma once

namespace octet::cuda {

// A block has `groups` warpgroups that multiply, with 64 rows of q of one head each, and one that
// fetches. `keys` keys, and their values, arrive at a time, `stages` times ahead. `cluster` blocks
// have rows below each other and share keys and values: each fetches a part for both.
struct HopperFlashTile {
  int head_dim;  // 64, 128 or 256, no less
  int keys;
  int stages;
  int groups;
  int cluster;
  bool int8;  // scores are products of INT8
  // Warpgroups take turns to issue their products, so that one's softmax overlaps with the other's
  // products; otherwise there is no order.
  bool alternates;
  bool int8_values;  // values and their weights have 8 bits, too; else they are BF16

  static constexpr int kRowBytes = 128;   // of a box of TMA: 64 BF16, 128 INT8
  static constexpr int kCodedKeys = 128;  // that share a scale of their values: QuantizedValues
  constexpr int rows() const { return 64 * groups; }
  constexpr int threads() const { return 128 * (groups + 1); }
  // Of a row of q and k, and of v in BF16.
  constexpr int score_boxes() const { return head_dim * (int8 ? 1 : 2) / kRowBytes; }
  constexpr int value_boxes() const { return head_dim * 2 / kRowBytes; }
  constexpr int q_bytes() const { return rows() * score_boxes() * kRowBytes; }
  constexpr int k_bytes() const { return keys * score_boxes() * kRowBytes; }
  constexpr int v_bytes() const { return keys * head_dim * (int8_values ? 1 : 2); }
  constexpr int scale_bytes() const { return int8 ? keys * 4 : 0; }

  // Shared memory: q, stages of k, stages of v, scales of the keys, barriers, words.
  constexpr int k_place() const { return q_bytes(); }
  constexpr int v_place() const { return k_place() + stages * k_bytes(); }
  constexpr int scale_place() const { return v_place() + stages * v_bytes(); }
  constexpr int k_barriers() const {
    return (scale_place() + stages * scale_bytes() + 15) / 16 * 16;
  }
  constexpr int v_barriers() const { return k_barriers() + stages * 16; }
  constexpr int q_barriers() const { return v_barriers() + stages * 16; }
  constexpr int words() const { return q_barriers() + 16; }
  constexpr int shared_bytes() const { return words() + 4 * groups; }

  // Registers per thread of warpgroups that multiply and of the one that fetches; at most 64 K.
  constexpr int registers() const { return groups == 2 ? 240 : 160; }
  constexpr int fetch_registers() const { return groups == 2 ? 24 : 32; }

  constexpr bool is_sound() const {
    return (head_dim == 64 || head_dim == 128 || head_dim == 256) && score_boxes() >= cluster &&
           keys % 16 == 0 && keys <= 256 && stages >= 2 && groups >= 2 && groups <= 3 &&
           cluster >= 1 && cluster <= 2 && score_boxes() % cluster == 0 &&
           value_boxes() % cluster == 0 && shared_bytes() <= 227 * 1024 &&
           (!int8_values || (int8 && keys == kCodedKeys && head_dim >= 128));
  }
  constexpr bool operator==(const HopperFlashTile&) const = default;
};

}  // namespace octet::cuda
