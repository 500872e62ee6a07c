// The exception type of the library. Its message is one sentence: what went wrong, what was
// expected, what was found and, if there is one, the remedy. Public functions throw nothing else:
// running out of memory, a thread that cannot start and an exception from one of your callbacks are
// Errors, too.
#pragma once

#include <stdexcept>
#include <string>

#include "octet/export.h"

namespace octet {

class OCTET_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence) : std::runtime_error(sentence) {}
};

}  // namespace octet
