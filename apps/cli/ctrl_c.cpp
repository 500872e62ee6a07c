#include "ctrl_c.h"

#include <csignal>

namespace octet::cli {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

void ask_to_stop(int) {
  stop_asked = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

CtrlC::CtrlC() {
  stop_asked = 0;
  std::signal(SIGINT, ask_to_stop);
}

CtrlC::~CtrlC() { std::signal(SIGINT, SIG_DFL); }

bool CtrlC::was_pressed() const { return stop_asked != 0; }

}  // namespace octet::cli
