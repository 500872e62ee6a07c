// Writing log lines for people: log::info("plan file {} ignored", path). See octet/log.h for where
// they go.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "octet/log.h"

namespace octet::log {

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

// For callers that have asked env::trace() whether the topic is wanted.
template <class... Args>
void trace(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::trace, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace octet::log
