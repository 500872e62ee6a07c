// Long work, and what it says to Python meanwhile.
//
// The work has a thread of its own. The thread that called waits for it without the GIL, runs the
// callbacks (Python programs expect theirs on the thread that called) and looks after signals, so
// that Ctrl-C ends a step that takes minutes, too.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace octet::python {

class Conversation {
 public:
  // Both run on the work's own thread, or without the GIL; `cancel` has to make `work` end soon.
  // An exception of a callback, or of a signal's handler, goes before that of the work.
  void hold(const std::function<void()>& work, const std::function<void()>& cancel);

  // For the work: runs `answer` on the thread that called. False after an exception: the work is to
  // end.
  bool ask(const std::function<void()>& answer);

 private:
  void answer_question(const std::function<void()>& cancel);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* question_ = nullptr;
  bool done_ = false;
  bool failed_ = false;       // error_ is set
  std::exception_ptr error_;  // of the calling side; it alone touches it, with the GIL held
};

}  // namespace octet::python
