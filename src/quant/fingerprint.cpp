#include "quant/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.h"

namespace octet::quant {
namespace {

constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: odd, its bits well spread

// The finalizer of MurmurHash3: every bit of the input reaches every bit of the result.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

// Four lanes, so that multiplications overlap.
uint64_t hash(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t lanes[4] = {seed, seed + kFactor, seed ^ kFactor, ~seed};
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    for (size_t lane = 0; lane < 4; ++lane) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + at + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * kFactor;
      lanes[lane] ^= lanes[lane] >> 29;
    }
  }
  uint64_t result = mixed(bytes.size() + seed);
  for (; at < bytes.size(); ++at) {
    result = mixed(result ^ static_cast<uint64_t>(bytes[at]));
  }
  for (const uint64_t lane : lanes) result = mixed(result + lane);
  return result;
}

}  // namespace

void Fingerprint::add(std::string_view name, std::span<const std::byte> bytes, ThreadPool& pool) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const auto size = static_cast<int64_t>(bytes.size());
  std::vector<uint64_t> pieces(static_cast<size_t>(ceil_div(size, kPiece)));
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t piece, int) {
    const auto at = static_cast<size_t>(piece * kPiece);
    const size_t count = std::min(static_cast<size_t>(kPiece), bytes.size() - at);
    pieces[static_cast<size_t>(piece)] = hash(bytes.subspan(at, count), at);
  });
  const uint64_t content = hash(std::as_bytes(std::span(pieces)), bytes.size());
  sum_ += mixed(content ^ hash(std::as_bytes(std::span(name)), kFactor));
}

std::string Fingerprint::to_string() const { return fmt::format("{:016x}", sum_); }

}  // namespace octet::quant
