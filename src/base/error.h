// Error helpers. `check(cond, "gemm: k is {}, expected a multiple of {}", k, 16)` throws Error.
//
// Functions rather than macros: the message carries the values, so the expression text and the
// line number add nothing for a user. The arguments of a passing check are never formatted.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "octet/error.h"

namespace octet {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) {
  throw Error(fmt::format(sentence, std::forward<Args>(args)...));
}

template <class... Args>
void check(bool condition, fmt::format_string<Args...> sentence, Args&&... args) {
  if (!condition) [[unlikely]] {
    fail(sentence, std::forward<Args>(args)...);
  }
}

// The text of `errno`, for messages about files ("No space left on device").
std::string system_error_text(int error_number);

}  // namespace octet
