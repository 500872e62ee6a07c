// A vector whose elements begin unset, for numbers that are written next: zeros would be written by
// one thread, and it alone would wait for each page of fresh memory.
#pragma once

#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace octet {

template <class T>
struct UnsetAllocator : std::allocator<T> {
  static_assert(std::is_trivial_v<T>);

  template <class U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };

  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
  }
};

template <class T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace octet
