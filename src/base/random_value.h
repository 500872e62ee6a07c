// Random numbers that are functions of their place: there is no state, the order of threads does
// not matter, and the same seed gives the same numbers on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace octet {

// Roughly normal, with mean 0 and standard deviation 1, and never beyond 3.5: the sum of four
// uniform 16-bit words of a hashed counter (splitmix64).
inline float random_value(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0x9e3779b97f4a7c15ull + (index + 1) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  const auto sum =
      static_cast<float>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
  constexpr float kMean = 2 * 65535.0f;
  constexpr float kDeviation = 37837.0f;  // sqrt(4 / 12) * 65535
  return (sum - kMean) / kDeviation;
}

// A seed of its own for each name (FNV-1a).
inline uint64_t seed_of(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash;
}

}  // namespace octet
