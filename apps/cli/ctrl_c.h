// Ctrl-C, for commands that end their work in an orderly way.
#pragma once

namespace octet::cli {

// Listens while it exists; one at a time. A second Ctrl-C ends the program at once, as if nobody
// had listened.
class CtrlC {
 public:
  CtrlC();
  ~CtrlC();
  CtrlC(const CtrlC&) = delete;
  CtrlC& operator=(const CtrlC&) = delete;

  bool was_pressed() const;
};

}  // namespace octet::cli
