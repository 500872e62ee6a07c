// nlohmann's JSON values, which take no memory to destroy. Include this instead of the library.
//
// Its own destructor moves all values of a tree into a vector first, so that deep trees do not
// overflow the stack. A parser that runs out of memory destroys what it has built, and that vector
// then ends the process: std::bad_alloc in a destructor. destroy() is replaced by one that needs
// neither memory nor a deep stack.
#pragma once

#include <nlohmann/json.hpp>

namespace nlohmann {

template <>
void basic_json<>::json_value::destroy(value_t type);
template <>
void basic_json<ordered_map>::json_value::destroy(value_t type);

}  // namespace nlohmann
