// Error helpers. `check(cond, "gemm: k is {}, expected a multiple of {}", k, 16)` throws Error.
//
// Functions rather than macros: the message contains the values, so the text of the expression and
// the line number would not help a user. The arguments of a passing check are never formatted.
//
// A name in backquotes is a field of a request if the backquotes are in the format string: "`size`
// is {}", "`{}` is {}". Those in arguments are users' data, unless the argument is a Sentence.
#pragma once

#include <fmt/format.h>

#include <string>

#include "octet/error.h"

namespace octet {

Sentence make_sentence(fmt::string_view format, fmt::format_args args);

template <class... Args>
Sentence sentence(fmt::format_string<Args...> format, Args&&... args) {
  return make_sentence(format, fmt::make_format_args(args...));
}

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(make_sentence(format, fmt::make_format_args(args...)));
}

template <class... Args>
void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]] {
    throw Error(make_sentence(format, fmt::make_format_args(args...)));
  }
}

// A Sentence within a format: fields in backquotes, or marked for make_sentence().
std::string text_to_format(const Sentence& sentence);

// The text of `errno`, for messages about files ("No space left on device").
std::string system_error_text(int error_number);

// "what: text of errno", as OutOfMemory where that is the reason.
[[noreturn]] void fail_by_system(int error_number, const Sentence& what);

}  // namespace octet

template <>
struct fmt::formatter<octet::Sentence> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const octet::Sentence& sentence, Context& context) const {
    return fmt::formatter<std::string>::format(octet::text_to_format(sentence), context);
  }
};
