// Threads, as many as there are to be had.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace octet {

using StartThread = std::function<std::thread(const std::function<void()>& work)>;

// Starts `count` threads that run `work`, or fewer, perhaps none, where the system gives no more: a
// limit of processes (ulimit -u) or of memory is no reason to stop what fewer threads can do. The
// caller joins them. `start` is for tests.
std::vector<std::thread> start_threads(int count, const std::function<void()>& work,
                                       const StartThread& start = {});

}  // namespace octet
