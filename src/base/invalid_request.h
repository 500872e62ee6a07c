// check() for a caller's request: throws InvalidRequest.
#pragma once

#include "base/error.h"
#include "octet/error.h"

namespace octet {

// `field`: the wrong field of the request.
template <class... Args>
void check_value(bool condition, const char* field, fmt::format_string<Args...> format,
                 Args&&... args) {
  if (!condition) [[unlikely]] {
    throw InvalidRequest(field, make_sentence(format, fmt::make_format_args(args...)));
  }
}

}  // namespace octet
