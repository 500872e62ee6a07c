#include "base/log.h"

#include <mutex>
#include <utility>

namespace octet::log {
namespace {

struct State {
  std::mutex mutex;
  Sink sink;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

void set_sink(Sink sink) {
  const std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
}

void write(Level level, std::string_view line) {
  const std::lock_guard lock(state().mutex);
  if (state().sink) state().sink(level, line);
}

}  // namespace octet::log
