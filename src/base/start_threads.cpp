#include "base/start_threads.h"

#include <cstddef>
#include <exception>

namespace octet {

std::vector<std::thread> start_threads(int count, const std::function<void()>& work,
                                       const StartThread& start) {
  std::vector<std::thread> threads;
  // Reserve all memory before the first one runs: nothing may throw while a thread is not joined.
  threads.reserve(static_cast<size_t>(count));
  try {
    while (threads.size() < static_cast<size_t>(count)) {
      threads.push_back(start ? start(work) : std::thread(work));
    }
  } catch (const std::exception&) {  // std::system_error, or no memory
  }
  return threads;
}

}  // namespace octet
