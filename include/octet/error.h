// The exception type of the library. Its message is one sentence: what went wrong, what was
// expected, what was found and, if there is one, the remedy.
//
// Public functions throw nothing else: if memory runs out, a thread cannot start or a callback of
// yours throws, that is an Error, too.
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
