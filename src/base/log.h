// Log lines for people. The library itself never prints: it hands each line to a sink, and the
// program decides what a sink does (the command line writes to standard error).
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace octet::log {

enum class Level { debug, info, warning };

using Sink = std::function<void(Level, std::string_view line)>;

// Replaces the sink; an empty one (the state at start) drops every line.
void set_sink(Sink sink);
void write(Level level, std::string_view line);

template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warning, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace octet::log
