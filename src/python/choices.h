// Words for the enumerations of the C++ interface.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "python/bindings.h"

namespace octet::python {

template <class Enum>
using Choices = std::initializer_list<std::pair<const char*, Enum>>;

template <class Enum>
Enum chosen(const char* field, const std::string& word, Choices<Enum> choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (word == name) return value;
    known += (known.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  raise_invalid_request(
      "`" + std::string(field) + "` is \"" + word + "\", expected one of " + known, field);
}

template <class Enum>
const char* word_of(Enum value, Choices<Enum> choices) {
  for (const auto& [name, choice] : choices) {
    if (choice == value) return name;
  }
  return "";
}

}  // namespace octet::python
