// How much of a backend's memory is in use, and the most that ever was.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "backend/observer.h"
#include "tensor/tensor.h"

namespace octet {

// Buffers may outlive their backend and end on any thread: they share this with it.
class MemoryCounter : public std::enable_shared_from_this<MemoryCounter> {
 public:
  // The same memory, counted until it is released.
  Buffer count(Buffer buffer) {
    const size_t bytes = buffer.bytes();
    add(bytes);
    auto owned = std::make_shared<Buffer>(std::move(buffer));
    std::byte* data = owned->data();
    return Buffer(data, bytes, [owned, self = shared_from_this()](std::byte*) mutable {
      self->remove(owned->bytes());
      owned.reset();
    });
  }

  MemoryUse use() const {
    const std::lock_guard lock(mutex_);
    return use_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    use_.peak = use_.used;
  }

 private:
  void add(size_t bytes) {
    const std::lock_guard lock(mutex_);
    use_.used += bytes;
    ++use_.allocations;
    use_.peak = std::max(use_.peak, use_.used);
  }
  void remove(size_t bytes) {
    const std::lock_guard lock(mutex_);
    use_.used -= bytes;
  }

  mutable std::mutex mutex_;
  MemoryUse use_;
};

}  // namespace octet
