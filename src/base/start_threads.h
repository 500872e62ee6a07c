// Starts as many threads as the system allows.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace octet {

using StartThread = std::function<std::thread(const std::function<void()>& work)>;

// Starts `count` threads that run `work`, or fewer, perhaps none, if the system allows no more: a
// limit on processes (ulimit -u) or memory must not stop what fewer threads can do. The caller
// joins them. `start` is for tests.
std::vector<std::thread> start_threads(int count, const std::function<void()>& work,
                                       const StartThread& start = {});

}  // namespace octet
