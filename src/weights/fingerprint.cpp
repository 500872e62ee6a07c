#include "weights/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/hash.h"

namespace octet::weights {

void Fingerprint::add(std::string_view name, std::span<const std::byte> bytes, ThreadPool& pool) {
  constexpr int64_t kChunk = int64_t{1} << 20;
  const auto size = static_cast<int64_t>(bytes.size());
  std::vector<uint64_t> chunks(static_cast<size_t>(ceil_div(size, kChunk)));
  pool.run(static_cast<int64_t>(chunks.size()), [&](int64_t chunk, int) {
    const auto at = static_cast<size_t>(chunk * kChunk);
    const size_t count = std::min(static_cast<size_t>(kChunk), bytes.size() - at);
    chunks[static_cast<size_t>(chunk)] = hash_bytes(bytes.subspan(at, count), at);
  });
  const uint64_t content = hash_bytes(std::as_bytes(std::span(chunks)), bytes.size());
  sum_ += mixed_bits(content ^ hash_bytes(std::as_bytes(std::span(name)), kHashFactor));
}

std::string Fingerprint::to_string() const { return fmt::format("{:016x}", sum_); }

}  // namespace octet::weights
