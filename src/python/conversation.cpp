#include "python/conversation.h"

#include <chrono>
#include <thread>

#include "python/bindings.h"

namespace octet::python {
namespace {

// How long Ctrl-C may go unnoticed.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

void Conversation::hold(const std::function<void()>& work, const std::function<void()>& cancel) {
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  });
  bool done = false;
  while (!done) {
    {
      const nb::gil_scoped_release released;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLook, [&] { return done_ || question_ != nullptr; });
      done = done_;
    }
    if (!done) answer_question(cancel);
  }
  {
    const nb::gil_scoped_release released;
    thread.join();
  }
  if (error_) std::rethrow_exception(error_);
  if (failure) std::rethrow_exception(failure);
}

void Conversation::answer_question(const std::function<void()>& cancel) {
  const std::function<void()>* question = nullptr;
  {
    const std::lock_guard lock(mutex_);
    question = question_;
  }
  bool failed = false;
  try {
    if (!error_ && PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!error_ && question != nullptr) (*question)();
  } catch (...) {
    error_ = std::current_exception();
    failed = true;
  }
  const nb::gil_scoped_release released;
  if (failed) cancel();
  const std::lock_guard lock(mutex_);
  failed_ = failed_ || failed;
  if (question != nullptr) {
    question_ = nullptr;
    changed_.notify_all();
  }
}

bool Conversation::ask(const std::function<void()>& answer) {
  std::unique_lock lock(mutex_);
  if (failed_) return false;
  question_ = &answer;
  changed_.notify_all();
  changed_.wait(lock, [&] { return question_ == nullptr; });
  return !failed_;
}

}  // namespace octet::python
