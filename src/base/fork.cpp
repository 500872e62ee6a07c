#include "base/fork.h"

#include <atomic>

namespace octet {
namespace {

std::atomic<uint32_t> forks{0};

// Before anything is made, so that no fork is missed.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

uint32_t fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace octet
