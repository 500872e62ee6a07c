// Text for people: what comes from files and users made safe to print, sizes and counts.
//
//   std::cout << octet::printable(tensor.name) << "\n";
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "octet/export.h"

namespace octet {

// The text on one line and harmless to a terminal: control characters, line separators and
// overrides of the writing direction become \uNNNN, bytes that are not UTF-8 become \xNN.
// Everything else is unchanged, in any script.
OCTET_API std::string printable(std::string_view text);

// The text as one word of a POSIX shell, in quotes only where it needs them: for hints that are
// commands.
OCTET_API std::string shell_word(std::string_view text);

OCTET_API std::string human_bytes(uint64_t bytes);                      // "9.58 GB"
OCTET_API std::string counted(size_t count, const std::string& thing);  // "1 picture", "8 pictures"

}  // namespace octet
