// The words of the C++ interface, as arguments.
#pragma once

#include <initializer_list>
#include <string>

#include "octet/words.h"
#include "python/bindings.h"

namespace octet::python {

// `chosen`: the values that the argument takes; none: all.
template <class Enum>
Enum value_of(const char* field, const std::string& word, std::initializer_list<Enum> chosen = {}) {
  std::string known;
  for (const std::string& name : word_list(chosen)) {
    if (word == name) return *from_word<Enum>(word);
    known += (known.empty() ? "\"" : ", \"") + name + "\"";
  }
  raise_invalid_request(
      "`" + std::string(field) + "` is \"" + word + "\", expected one of " + known, field);
}

}  // namespace octet::python
