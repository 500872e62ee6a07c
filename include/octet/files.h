// Writing results.
#pragma once

#include <string>

namespace octet {

// The file appears whole or not at all. Throws Error naming the path when it cannot be written.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace octet
