// Collects what a reader finds, in little memory, and makes a Trace of it: names and signatures
// kept once each, ops nested, kernels linked to the ops that launched them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "audit/trace.h"

namespace octet::audit {

// Grows without moving, so that there is never a second copy of what a vector holds.
template <class T>
class ChunkedList {
 public:
  void push_back(const T& value) {
    if (size_ % kChunk == 0) chunks_.push_back(std::make_unique_for_overwrite<T[]>(kChunk));
    chunks_.back()[size_++ % kChunk] = value;
  }
  size_t size() const { return size_; }

  // Each chunk is released once it is copied.
  std::vector<T> take() {
    std::vector<T> all;
    all.reserve(size_);
    for (std::unique_ptr<T[]>& chunk : chunks_) {
      const size_t count = size_ - all.size() < kChunk ? size_ - all.size() : kChunk;
      all.insert(all.end(), chunk.get(), chunk.get() + count);
      chunk.reset();
    }
    chunks_.clear();
    size_ = 0;
    return all;
  }

 private:
  static constexpr size_t kChunk = 16384;
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

class TraceTables {
 public:
  // A file with more has been made to fill memory, or covers far more steps than an audit needs.
  static constexpr size_t kMaxEvents = 8'000'000;
  static constexpr size_t kMaxTableBytes = size_t{64} << 20;  // of all names and signatures
  static constexpr size_t kMaxName = 4096;                    // longer ones are cut
  // Of one row of a table, so that sums over all rows of many files stay numbers.
  static constexpr int64_t kMaxCalls = 10'000'000'000;

  // `path` begins error sentences.
  explicit TraceTables(std::string path) : path_(std::move(path)) {}

  uint32_t name(std::string_view name);
  uint32_t signature(const Signature& signature);
  // A small number for what identifies a thread.
  uint32_t thread(uint64_t key);

  // Ids say who launched what, 0: not told. op.parent and kernel.op are found later.
  void add_op(Op op, uint32_t id);
  void add_kernel(Kernel kernel, uint32_t id, uint32_t correlation);
  // A call of the CUDA runtime: it ties a kernel of the same `correlation` to the op of this id, or
  // to the one that was running on the thread at that time.
  void add_launch(double start_us, uint32_t thread, uint32_t id, uint32_t correlation);

  bool has_ops() const { return ops_.size() > 0; }
  bool has_kernels() const { return kernels_.size() > 0; }

  // Everything, sorted by time if has_order.
  Trace take(const std::string& format, const std::string& device, bool has_order);

 private:
  struct Launch {
    double start_us = 0;
    uint32_t thread = 0, id = 0, correlation = 0;
  };

  void count_event();
  void count_bytes(size_t bytes);

  std::string path_;
  size_t events_ = 0, table_bytes_ = 0;
  std::deque<std::string> names_;  // which does not move, so that views of it stay valid
  std::unordered_map<std::string_view, uint32_t> name_numbers_;
  std::vector<Signature> signatures_;
  std::unordered_map<std::string, uint32_t> signature_numbers_;
  std::unordered_map<uint64_t, uint32_t> threads_;
  bool has_shapes_ = false;
  ChunkedList<Op> ops_;          // `parent` holds the id
  ChunkedList<Kernel> kernels_;  // `op` holds the id
  ChunkedList<uint32_t> correlations_;
  ChunkedList<Launch> launches_;
};

}  // namespace octet::audit
