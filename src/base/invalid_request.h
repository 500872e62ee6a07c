// check() for what a caller asked for: throws InvalidRequest.
#pragma once

#include <utility>

#include "base/error.h"
#include "octet/invalid_request.h"

namespace octet {

// `field`: of the request, that is wrong.
template <class... Args>
void check_value(bool condition, const char* field, fmt::format_string<Args...> sentence,
                 Args&&... args) {
  if (!condition) [[unlikely]] {
    throw InvalidRequest(field, fmt::format(sentence, std::forward<Args>(args)...));
  }
}

}  // namespace octet
