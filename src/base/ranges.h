// Work of the host between a device's, by all threads: the device waits for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"

namespace octet {

// Calls work(first, count) for ranges that make up [0, count), each of `at_once` or fewer; on this
// thread alone if there is no pool.
template <class Work>
void for_ranges(ThreadPool* pool, size_t count, size_t at_once, const Work& work) {
  if (pool == nullptr) return work(size_t{0}, count);
  pool->run(static_cast<int64_t>((count + at_once - 1) / at_once), [&](int64_t index, int) {
    const size_t first = static_cast<size_t>(index) * at_once;
    work(first, std::min(at_once, count - first));
  });
}

}  // namespace octet
