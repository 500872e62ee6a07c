#include "python/conversation.h"

#include <chrono>
#include <map>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "python/bindings.h"
#include "python/gil.h"

namespace octet::python {
namespace {

// How long Ctrl-C may go unnoticed, and how long an exit waits for work.
constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::seconds kEnding{10};

// The conversations whose work runs, and how to cancel it.
struct Running {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Conversation*, const std::function<void()>*> conversations;
  bool is_exiting = false;

  void begin(Conversation& one, const std::function<void()>& cancel) {
    const std::lock_guard lock(mutex);
    if (is_exiting) throw Cancelled("Python is exiting");
    conversations.emplace(&one, &cancel);
  }
  void end(Conversation& one) {
    const std::lock_guard lock(mutex);
    conversations.erase(&one);
    changed.notify_all();
  }
};

// Never destroyed: daemon threads may be here while the process exits.
Running& all_running() {
  static Running* const made = new Running;
  return *made;
}

}  // namespace

void Conversation::hold(const std::function<void()>& work, const std::function<void()>& cancel) {
  std::exception_ptr failure;
  all_running().begin(*this, cancel);
  std::thread thread;
  try {
    thread = std::thread([&] {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      all_running().end(*this);
      const std::lock_guard lock(mutex_);
      done_ = true;
      changed_.notify_all();
    });
  } catch (const std::system_error& error) {
    all_running().end(*this);
    fail("a thread cannot be started: {}", error.what());
  }
  bool done = false;
  while (!done) {
    {
      const Unlocked unlocked;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLook, [&] { return done_ || (question_ != nullptr && !failed_); });
      done = done_;
    }
    if (!done) answer_question(cancel);
  }
  {
    const Unlocked unlocked;
    thread.join();
  }
  if (error_) std::rethrow_exception(error_);
  if (failure) std::rethrow_exception(failure);
}

void Conversation::answer_question(const std::function<void()>& cancel) {
  const std::function<void()>* question = nullptr;
  {
    const std::lock_guard lock(mutex_);
    question = failed_ ? nullptr : question_;
    answering_ = question != nullptr;
  }
  bool failed = false;
  try {
    or_wait_for_exit([&] {
      if (!error_ && PyErr_CheckSignals() != 0) throw nb::python_error();
      if (question != nullptr) (*question)();
    });
  } catch (...) {
    error_ = std::current_exception();
    failed = true;
  }
  const Unlocked unlocked;
  if (failed) cancel();
  const std::lock_guard lock(mutex_);
  failed_ = failed_ || failed;
  answering_ = false;
  if (question != nullptr || failed_) {
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

// A question that is being answered is waited for: the answer uses what belongs to the work.
void Conversation::end() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  if (!answering_) question_ = nullptr;
  changed_.notify_all();
}

void Conversation::end_all() {
  const Unlocked unlocked;
  Running& running = all_running();
  std::unique_lock lock(running.mutex);
  running.is_exiting = true;
  for (const auto& [each, cancel] : running.conversations) {
    each->end();
    (*cancel)();
  }
  running.changed.wait_for(lock, kEnding, [&] { return running.conversations.empty(); });
}

}  // namespace octet::python
