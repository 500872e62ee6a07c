#include "base/log.h"

#include <pthread.h>

#include <mutex>
#include <new>
#include <utility>

#include "base/env.h"
#include "base/error.h"
#include "base/never_destroyed.h"

namespace octet::log {
namespace {

struct State {
  std::mutex mutex;
  Sink sink;
};

State& state() {
  static State& made = never_destroyed<State>();
  // A child gets a mutex of its own: another thread may have had this one, and there is no such
  // thread in the child. The sink is whole in any case but while it is replaced.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { new (&made.mutex) std::mutex; });
  return made;
}

}  // namespace

void set_sink(Sink sink) {
  const std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
}

void write(Level level, const Sentence& line) {
  const std::lock_guard lock(state().mutex);
  if (state().sink) state().sink(level, line);
}

std::optional<Level> level_from_environment() {
  const auto wanted = env::log();
  if (!wanted) return std::nullopt;
  const auto level = from_word<Level>(*wanted);
  if (level && *level != Level::trace) return level;
  fail("OCTET_LOG is '{}', expected debug, info or quiet", *wanted);
}

}  // namespace octet::log
