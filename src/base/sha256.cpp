#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace octet {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::mix(const std::byte* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = 0;
    for (int byte = 0; byte < 4; ++byte) {
      w[i] = w[i] << 8 | std::to_integer<uint32_t>(block[4 * i + byte]);
    }
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += mixed[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  size_t held = bytes_ % rest_.size();
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (held == 0 && bytes.size() >= rest_.size()) {
      mix(bytes.data());
      bytes = bytes.subspan(rest_.size());
      continue;
    }
    const size_t count = std::min(bytes.size(), rest_.size() - held);
    std::memcpy(rest_.data() + held, bytes.data(), count);
    bytes = bytes.subspan(count);
    held += count;
    if (held == rest_.size()) {
      mix(rest_.data());
      held = 0;
    }
  }
}

// A one bit, zeros, and the length in bits, up to the end of a block.
std::string Sha256::digest() {
  const uint64_t bits = bytes_ * 8;
  constexpr std::byte kOne{0x80}, kZero{0};
  add({&kOne, 1});
  while (bytes_ % rest_.size() != rest_.size() - 8) add({&kZero, 1});
  std::byte length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  add(length);
  std::string text;
  for (const uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.digest();
}

}  // namespace octet
