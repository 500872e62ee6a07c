// The file that this code was loaded from.
#pragma once

#include <filesystem>
#include <optional>

namespace octet {

// The program that Octet is linked into, or its shared library; absolute, links resolved. Nothing
// where /proc does not say, or the file was removed since.
std::optional<std::filesystem::path> own_file();

}  // namespace octet
