// How the demo refuses: one sentence, as an Error of the library.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "octet/error.h"

namespace octet::demo {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> sentence, Args&&... args) {
  throw Error(fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace octet::demo
