// Writes result files.
#pragma once

#include <string>

#include "octet/export.h"

namespace octet {

// The file appears whole or not at all. Throws Error naming the path when it cannot be written.
OCTET_API void write_text_file(const std::string& path, const std::string& text);

// Throws the same Error when the file could not be created, and changes nothing otherwise. For the
// start of long work, whose result would be lost at its end.
OCTET_API void check_writable(const std::string& path);

}  // namespace octet
