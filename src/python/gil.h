// Threads and the GIL while Python exits.
//
// Python ends its daemon threads as it exits: by pthread_exit(), where they next ask for the GIL.
// That unwinds the stack, which C++ does not allow in destructors and noexcept functions, and which
// would destroy threads that run. Such a thread waits here instead, until the process has ended.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <utility>

namespace octet::python {

// Whatever may ask for the GIL.
template <class Work>
auto or_wait_for_exit(Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

// Releases the GIL while it exists.
class Unlocked {
 public:
  Unlocked() = default;
  ~Unlocked() {
    or_wait_for_exit([this] { PyEval_RestoreThread(state_); });
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_ = PyEval_SaveThread();
};

}  // namespace octet::python
