#include "stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "octet/tools/files.h"

namespace octet::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kShellOffset = 128;

// One wish may come as several signals: a terminal that closes sends SIGHUP by its shell and by the
// kernel, timeout(1) signals the program and then its group. What comes this soon is the same wish.
constexpr int64_t kOneWish = 1'000'000'000;  // ns

// Read and written by handlers, in whichever thread they run.
std::atomic<int> sent = 0;
std::atomic<int64_t> sent_at = 0;
std::atomic<bool> listening = false;
std::atomic<bool> on_terminal = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

int64_t now() {
  struct timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);  // allowed in a handler
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Only write() is allowed in a handler. The line is lost if standard error is closed.
void say(const char* line) {
  const ssize_t written = ::write(STDERR_FILENO, line, std::strlen(line));
  static_cast<void>(written);
}

void on_signal(int signal) {
  const int error_number = errno;
  ::signal(SIGPIPE, SIG_IGN);  // a log that nobody reads must not change the exit code
  if (listening && sent == 0) {
    sent_at = now();  // first: another thread may take the next signal meanwhile
    sent = signal;
    if (on_terminal) say("\noctet: stopping; Ctrl-C again, after a second, ends it at once\n");
    errno = error_number;
    return;
  }
  if (sent != 0 && now() - sent_at < kOneWish) {
    errno = error_number;
    return;
  }
  remove_temporary_files();
  say("octet: ended by a signal\n");
  ::_exit(kShellOffset + signal);
}

}  // namespace

void handle_stop_signals() {
  on_terminal = ::isatty(STDERR_FILENO) == 1;
  for (const int signal : kSignals) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    // One at a time in a thread: the second finds what the first noted.
    for (const int other : kSignals) ::sigaddset(&action.sa_mask, other);
    ::sigaction(signal, &action, nullptr);
  }
}

int exit_code_after_signals(int code) {
  return sent == 0 || code == 0 ? code : kShellOffset + sent;
}

StopSignal::StopSignal() { listening = true; }

StopSignal::~StopSignal() { listening = false; }

bool StopSignal::was_sent() const { return sent != 0; }

}  // namespace octet::cli
