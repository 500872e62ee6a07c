// Writing log lines for people: log::info("plan file {} ignored", path). See octet/log.h for where
// they go.
#pragma once

#include <fmt/format.h>

#include "base/error.h"
#include "octet/log.h"

namespace octet::log {

void write(Level level, const Sentence& line);

template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::debug, make_sentence(text, fmt::make_format_args(args...)));
}

template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::info, make_sentence(text, fmt::make_format_args(args...)));
}

template <class... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warning, make_sentence(text, fmt::make_format_args(args...)));
}

// For callers that have asked env::trace() whether the topic is wanted.
template <class... Args>
void trace(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::trace, make_sentence(text, fmt::make_format_args(args...)));
}

}  // namespace octet::log
