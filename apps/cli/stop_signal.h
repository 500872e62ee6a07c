// SIGINT (Ctrl-C), SIGTERM and SIGHUP: all three ask the program to end, with the exit code 128 +
// signal, as shells count: 130, 143 and 129.
//
// Work that has something to save holds a StopSignal: the first signal is noted then, and the work
// ends where it is whole. Another one, a second later or more, ends the program at once, and so
// does the first where nobody listens; no file that has its name is half-written even then.
#pragma once

namespace octet::cli {

// For main(), before any work. A SIGHUP that is ignored already stays so: nohup.
void handle_stop_signals();

// 128 + the signal that was sent, else `code`; work that was completed all the same is 0.
int exit_code_after_signals(int code);

// Listens while it exists; one at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool was_sent() const;
};

}  // namespace octet::cli
