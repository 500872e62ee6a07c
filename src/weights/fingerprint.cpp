#include "weights/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/hash.h"

namespace octet::weights {

void ChunkHashes::add(size_t at, std::span<const std::byte> bytes) {
  const size_t end = at + bytes.size();
  for (size_t chunk = (at + kChunk - 1) / kChunk; chunk < chunks_.size(); ++chunk) {
    const size_t begin = chunk * kChunk, size = std::min(kChunk, bytes_ - begin);
    if (begin + size > end) break;
    chunks_[chunk] = hash_bytes(bytes.subspan(begin - at, size), begin);
  }
}

std::vector<size_t> ChunkHashes::missing() const {
  std::vector<size_t> found;
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (!chunks_[chunk]) found.push_back(chunk);
  }
  return found;
}

uint64_t ChunkHashes::finish(std::span<const std::byte> tensor, ThreadPool& pool) {
  const std::vector<size_t> left = missing();
  pool.run(static_cast<int64_t>(left.size()), [&](int64_t i, int) {
    const size_t begin = left[static_cast<size_t>(i)] * kChunk;
    add(begin, tensor.subspan(begin, std::min(kChunk, bytes_ - begin)));
  });
  std::vector<uint64_t> hashes;
  for (const auto& chunk : chunks_) hashes.push_back(*chunk);
  return hash_bytes(std::as_bytes(std::span(hashes)), bytes_);
}

void Fingerprint::add(std::string_view name, std::span<const std::byte> bytes, ChunkHashes hashes,
                      ThreadPool& pool) {
  const uint64_t content = hashes.finish(bytes, pool);
  sum_ += mixed_bits(content ^ hash_bytes(std::as_bytes(std::span(name)), kHashFactor));
}

std::string Fingerprint::to_string() const { return fmt::format("{:016x}", sum_); }

}  // namespace octet::weights
