// A name for the content of a checkpoint: the same numbers give the same name, wherever they lie.
//
// 64 bits, for telling checkpoints apart, not for trusting them. It costs one pass over bytes that
// are being read anyway, where a cryptographic hash of 20 GB would take longer than an image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/thread_pool.h"

namespace octet::weights {

class Fingerprint {
 public:
  Fingerprint() = default;
  explicit Fingerprint(uint64_t value) : sum_(value) {}  // of value()

  // The order in which tensors are added does not matter, nor does the number of threads.
  void add(std::string_view name, std::span<const std::byte> bytes, ThreadPool& pool);
  void add(const Fingerprint& other) { sum_ += other.sum_; }
  uint64_t value() const { return sum_; }
  std::string to_string() const;  // "9f86d081884c7d65"

 private:
  uint64_t sum_ = 0;
};

}  // namespace octet::weights
