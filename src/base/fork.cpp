#include "base/fork.h"

#include <atomic>
#include <new>

namespace octet {
namespace {

std::atomic<uint32_t> forks{0};

}  // namespace

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  if (pthread_atfork(before, in_parent, in_child) != 0) throw std::bad_alloc();
}

uint32_t fork_count() {
  // Nobody has to know of a fork before the first call.
  [[maybe_unused]] static const bool counting = [] {
    at_fork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    return true;
  }();
  return forks.load(std::memory_order_relaxed);
}

}  // namespace octet
