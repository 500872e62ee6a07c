// The one exception type of the library. Its message is a single sentence that says what went
// wrong, what was expected, what was found and, where there is one, the remedy.
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
