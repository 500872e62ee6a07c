#include "quant/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/hash.h"

namespace octet::quant {

void Fingerprint::add(std::string_view name, std::span<const std::byte> bytes, ThreadPool& pool) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const auto size = static_cast<int64_t>(bytes.size());
  std::vector<uint64_t> pieces(static_cast<size_t>(ceil_div(size, kPiece)));
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t piece, int) {
    const auto at = static_cast<size_t>(piece * kPiece);
    const size_t count = std::min(static_cast<size_t>(kPiece), bytes.size() - at);
    pieces[static_cast<size_t>(piece)] = hash_bytes(bytes.subspan(at, count), at);
  });
  const uint64_t content = hash_bytes(std::as_bytes(std::span(pieces)), bytes.size());
  sum_ += mixed_bits(content ^ hash_bytes(std::as_bytes(std::span(name)), kHashFactor));
}

std::string Fingerprint::to_string() const { return fmt::format("{:016x}", sum_); }

}  // namespace octet::quant
