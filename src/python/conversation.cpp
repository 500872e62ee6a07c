#include "python/conversation.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <system_error>

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
  std::optional<std::thread::id> exiting;  // the thread that ends Python

  void begin(Conversation& one, const std::function<void()>& cancel) {
    wait_if_exiting();
    const std::lock_guard lock(mutex);
    if (exiting) throw Cancelled("Python is exiting");
    conversations.emplace(&one, &cancel);
  }
  // Python does not wait for daemon threads, and ends them where they next ask for the GIL. An
  // exception because of that would be printed by whichever of them came first.
  void wait_if_exiting() {
    {
      const std::lock_guard lock(mutex);
      if (!exiting || *exiting == std::this_thread::get_id()) return;
    }
    const Unlocked unlocked;
    for (;;) ::pause();
  }
  void end(Conversation& one) {
    const std::lock_guard lock(mutex);
    conversations.erase(&one);
    changed.notify_all();
  }
};

// Never destroyed: daemon threads may be here while the process exits. A child has its own: what
// its parent's wait for, it lacks.
Running* running_here = new Running;
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { running_here = new Running; });

}  // namespace

// In a child it is left as it is.
Conversation::~Conversation() {
  if (is_forked()) shared_.release();
}

void Conversation::hold(const std::function<void()>& work, const std::function<void()>& cancel) {
  std::exception_ptr failure;
  Shared& shared = *shared_;
  running_here->begin(*this, cancel);
  try {
    shared.thread = std::thread([&] {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      running_here->end(*this);
      const std::lock_guard lock(shared.mutex);
      shared.done = true;
      shared.changed.notify_all();
    });
  } catch (const std::system_error& error) {
    running_here->end(*this);
    fail("a thread cannot be started: {}", error.what());
  }
  bool done = false;
  while (!done && !is_forked()) {
    {
      const Unlocked unlocked;
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_for(lock, kLook, [&] {
        return shared.done || (shared.question != nullptr && !shared.failed);
      });
      done = shared.done;
    }
    if (!done) answer_question(cancel);
  }
  if (!is_forked()) {
    const Unlocked unlocked;
    shared.thread.join();
  }
  if (!is_forked()) running_here->wait_if_exiting();
  if (error_) std::rethrow_exception(error_);
  check(!is_forked(),
        "this process was forked by a callback, and lacks the thread of the work that the callback "
        "belongs to; leave it with os._exit(), or start processes with \"spawn\"");
  if (failure) std::rethrow_exception(failure);
}

void Conversation::answer_question(const std::function<void()>& cancel) {
  Shared& shared = *shared_;
  const std::function<void()>* question = nullptr;
  {
    const std::lock_guard lock(shared.mutex);
    question = shared.failed ? nullptr : shared.question;
    shared.answering = question != nullptr;
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
  if (is_forked()) return;
  const Unlocked unlocked;
  if (failed) cancel();
  const std::lock_guard lock(shared.mutex);
  shared.failed = shared.failed || failed;
  shared.answering = false;
  if (question != nullptr || shared.failed) {
    shared.question = nullptr;
    shared.changed.notify_all();
  }
}

bool Conversation::ask(const std::function<void()>& answer) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  if (shared.failed) return false;
  shared.question = &answer;
  shared.changed.notify_all();
  shared.changed.wait(lock, [&] { return shared.question == nullptr; });
  return !shared.failed;
}

// A question that is being answered is waited for: the answer uses what belongs to the work.
void Conversation::end() {
  const std::lock_guard lock(shared_->mutex);
  shared_->failed = true;
  if (!shared_->answering) shared_->question = nullptr;
  shared_->changed.notify_all();
}

void Conversation::end_all() {
  const Unlocked unlocked;
  Running& running = *running_here;
  std::unique_lock lock(running.mutex);
  running.exiting = std::this_thread::get_id();
  for (const auto& [each, cancel] : running.conversations) {
    each->end();
    (*cancel)();
  }
  running.changed.wait_for(lock, kEnding, [&] { return running.conversations.empty(); });
}

bool Conversation::have_ended() {
  const std::lock_guard lock(running_here->mutex);
  return running_here->exiting && running_here->conversations.empty();
}

}  // namespace octet::python
