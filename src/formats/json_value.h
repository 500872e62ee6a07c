// nlohmann's JSON values, without what ends the process when memory runs out. Include this instead
// of the library.
//
// Its own destructor moves all values of a tree into a vector first, so that deep trees do not
// overflow the stack. A parser that runs out of memory destroys what it has built, and that vector
// then ends the process: std::bad_alloc in a destructor. destroy() is replaced by one that needs
// neither memory nor a deep stack. Its own == makes a JSON string of a literal, and is noexcept.
#pragma once

#include <nlohmann/json.hpp>

namespace nlohmann {

// These are chosen before those of the library, which are templates.
bool operator==(const json& value, const char* text) noexcept;
bool operator==(const ordered_json& value, const char* text) noexcept;
inline bool operator!=(const json& value, const char* text) noexcept { return !(value == text); }
inline bool operator!=(const ordered_json& value, const char* text) noexcept {
  return !(value == text);
}

template <>
void basic_json<>::json_value::destroy(value_t type);
template <>
void basic_json<ordered_map>::json_value::destroy(value_t type);

}  // namespace nlohmann
