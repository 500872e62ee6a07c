// Work on the stream, and in the memory, of whoever asks for it: a framework that has
// its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "base/error.h"
#include "base/out_of_memory.h"

namespace octet {

class Backend;

// Memory is taken from a block that was given beforehand, as long as it lasts, and is never given
// back: the caller keeps it until the work that used it is done.
struct Caller {
  static constexpr size_t kAlignment = 256;

  void* stream = nullptr;  // a cudaStream_t; null: the device's default stream
  std::byte* memory = nullptr;
  size_t bytes = 0;
  void* (*allocate)(void* user, size_t bytes) = nullptr;  // may be null
  void* user = nullptr;

  std::byte* take(size_t wanted) {
    const auto rounded = static_cast<size_t>(
        round_up(static_cast<int64_t>(wanted > 0 ? wanted : 1), int64_t{kAlignment}));
    if (rounded <= bytes) {
      std::byte* taken = memory;
      memory += rounded;
      bytes -= rounded;
      return taken;
    }
    void* more = allocate == nullptr ? nullptr : allocate(user, rounded);
    if (more == nullptr) {
      throw OutOfMemory(sentence("a call needs {} more bytes of memory, and `allocate` {}", rounded,
                                 allocate == nullptr ? "is NULL" : "gave none"));
    }
    check(reinterpret_cast<uintptr_t>(more) % kAlignment == 0,
          "`allocate` returned an address that is not a multiple of {}", kAlignment);
    return static_cast<std::byte*>(more);
  }
};

// During its life, the ops of a backend work for this caller. Backends of the host ignore it:
// they have neither streams nor a memory of their own.
class Visit {
 public:
  Visit(Backend& backend, Caller& caller);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Backend& backend_;
};

}  // namespace octet
