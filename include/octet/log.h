// Where log lines go. The library itself prints nothing.
#pragma once

#include <functional>
#include <optional>

#include "octet/export.h"
#include "octet/sentence.h"
#include "octet/words.h"

namespace octet::log {

// In ascending order. Trace lines are requested by topic (OCTET_TRACE), so they rank above
// warnings: no verbosity setting hides them.
enum class Level { debug, info, warning, trace };

using Sink = std::function<void(Level, const Sentence& line)>;  // may take a std::string_view

// Replaces the sink; an empty one (the initial state) drops every line.
OCTET_API void set_sink(Sink sink);

// The lowest level selected by the variable OCTET_LOG: debug, info, or quiet for warnings only.
// Empty if it is not set; throws Error for any other value. A program's own flags take precedence.
OCTET_API std::optional<Level> level_from_environment();

}  // namespace octet::log

// The lowest level that is written; with quiet, only warnings are.
template <>
struct octet::Words<octet::log::Level> {
  using Level = log::Level;
  static constexpr Word<Level> list[] = {{Level::debug, "debug"},
                                         {Level::info, "info"},
                                         {Level::warning, "quiet"},
                                         {Level::trace, "trace"}};
};
