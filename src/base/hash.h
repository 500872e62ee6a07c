// A 64-bit hash of bytes, for telling contents apart and noticing damage, not for security: it is
// easy to construct a collision. Several GB/s on one core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace octet {

inline constexpr uint64_t kHashFactor =
    0x9e3779b97f4a7c15;  // 2^64 / golden ratio: odd, its bits well spread

// The finalizer of MurmurHash3: every bit of the input reaches every bit of the result.
inline uint64_t mixed_bits(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

// Four lanes, so that multiplications overlap.
inline uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t lanes[4] = {seed, seed + kHashFactor, seed ^ kHashFactor, ~seed};
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    for (size_t lane = 0; lane < 4; ++lane) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + at + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * kHashFactor;
      lanes[lane] ^= lanes[lane] >> 29;
    }
  }
  uint64_t result = mixed_bits(bytes.size() + seed);
  for (; at < bytes.size(); ++at) {
    result = mixed_bits(result ^ static_cast<uint64_t>(bytes[at]));
  }
  for (const uint64_t lane : lanes) result = mixed_bits(result + lane);
  return result;
}

inline uint64_t hash_text(std::string_view text) {
  return hash_bytes(std::as_bytes(std::span(text)), text.size());
}

}  // namespace octet
