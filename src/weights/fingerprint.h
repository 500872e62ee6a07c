// A name for the content of a checkpoint: the same numbers give the same name, wherever they lie.
//
// 64 bits, for telling checkpoints apart, not for trusting them. It costs one pass over bytes that
// are being read anyway, where a cryptographic hash of 20 GB would take longer than an image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"

namespace octet::weights {

// The hashes of a tensor's bytes, chunk by chunk, made while they are at hand for something else.
class ChunkHashes {
 public:
  static constexpr size_t kChunk = size_t{1} << 20;

  ChunkHashes() = default;  // of nothing
  explicit ChunkHashes(size_t bytes) : bytes_(bytes), chunks_((bytes + kChunk - 1) / kChunk) {}

  // Bytes of the tensor from `at` on; of them, whole chunks are hashed. Several threads may call it
  // for different parts.
  void add(size_t at, std::span<const std::byte> bytes);
  // The chunks that were not added whole.
  std::vector<size_t> missing() const;
  // These are made from the tensor's bytes. Returns the hash of all.
  uint64_t finish(std::span<const std::byte> tensor, ThreadPool& pool);

 private:
  size_t bytes_ = 0;
  std::vector<std::optional<uint64_t>> chunks_;
};

class Fingerprint {
 public:
  Fingerprint() = default;
  explicit Fingerprint(uint64_t value) : sum_(value) {}  // of value()

  // The order in which tensors are added does not matter, nor does the number of threads.
  void add(std::string_view name, std::span<const std::byte> bytes, ThreadPool& pool) {
    add(name, bytes, ChunkHashes(bytes.size()), pool);
  }
  // The same with hashes of these bytes that are there already.
  void add(std::string_view name, std::span<const std::byte> bytes, ChunkHashes hashes,
           ThreadPool& pool);
  void add(const Fingerprint& other) { sum_ += other.sum_; }
  uint64_t value() const { return sum_; }
  std::string to_string() const;  // "9f86d081884c7d65"

 private:
  uint64_t sum_ = 0;
};

}  // namespace octet::weights
