// Makes text from files and users safe to print.
//
//   std::cout << octet::printable(tensor.name) << "\n";
#pragma once

#include <string>
#include <string_view>

#include "octet/export.h"

namespace octet {

// The text on one line and harmless to a terminal: control characters, line separators and
// overrides of the writing direction become \uNNNN, bytes that are not UTF-8 become \xNN.
// Everything else is unchanged, in any script.
OCTET_API std::string printable(std::string_view text);

}  // namespace octet
