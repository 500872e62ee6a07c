// Long work with callbacks into Python.
//
// The work has a thread of its own. The calling thread waits for it without the GIL, runs the
// callbacks (Python programs expect them on the calling thread) and handles signals, so that Ctrl-C
// ends even a step that takes minutes.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace octet::python {

class Conversation {
 public:
  // Both run without the GIL, `work` on a thread of its own; `cancel` has to make `work` end soon.
  // An exception of a callback or of a signal handler takes precedence over that of the work.
  // Throws Cancelled after end_all().
  void hold(const std::function<void()>& work, const std::function<void()>& cancel);

  // For the work: runs `answer` on the calling thread. False after an exception: the work has to
  // end.
  bool ask(const std::function<void()>& answer);

  // Before Python exits: ends the work of all conversations, whose threads may be daemons that
  // Python does not wait for, and begins no other.
  static void end_all();

 private:
  void answer_question(const std::function<void()>& cancel);
  void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* question_ = nullptr;
  bool answering_ = false;  // the question
  bool done_ = false;
  bool failed_ = false;       // error_ is set, or Python exits
  std::exception_ptr error_;  // used only by the calling thread, with the GIL held
};

}  // namespace octet::python
