// Long work with callbacks into Python.
//
// The work has a thread of its own. The calling thread waits for it without the GIL, runs the
// callbacks (Python programs expect them on the calling thread) and handles signals, so that Ctrl-C
// ends even a step that takes minutes.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/fork.h"

namespace octet::python {

class Conversation {
 public:
  Conversation() = default;
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Both run without the GIL, `work` on a thread of its own; `cancel` has to make `work` end soon.
  // An exception of a callback or of a signal handler takes precedence over that of the work.
  // Throws Cancelled after end_all(), and Error in a child that a callback forked. A daemon thread
  // whose work end_all() ended does not return.
  void hold(const std::function<void()>& work, const std::function<void()>& cancel);

  // For the work: runs `answer` on the calling thread. False after an exception: the work has to
  // end.
  bool ask(const std::function<void()>& answer);

  // Before Python exits: ends the work of all conversations, whose threads may be daemons that
  // Python does not wait for, and begins no other.
  static void end_all();
  // Whether end_all() was called, and nothing runs any more.
  static bool have_ended();

 private:
  // With the work's thread.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    const std::function<void()>* question = nullptr;
    bool answering = false;  // the question
    bool done = false;
    bool failed = false;  // error_ is set, or Python exits
    std::thread thread;
  };

  bool is_forked() const { return forks_ != fork_count(); }
  void answer_question(const std::function<void()>& cancel);
  void end();

  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::exception_ptr error_;  // used only by the calling thread, with the GIL held
  uint32_t forks_ = fork_count();
};

}  // namespace octet::python
