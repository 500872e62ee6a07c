// Regular files, and what may be found in their place: a pipe without a writer, where opening would
// block forever, or a circle of links, for which std::filesystem throws exceptions of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace octet {

// Whether a regular file is at `path`, links followed; false if nothing is. Throws Error, naming
// the path, when something else is there (a folder, a pipe, a link that leads nowhere or in a
// circle), or when it cannot be examined.
bool is_file_there(const std::string& path);

// The first bytes of a regular file, `limit` of them at most; nothing when no file is there. Never
// waits. Throws Error as is_file_there() does, and when the file cannot be read.
std::optional<std::string> read_start(const std::string& path, size_t limit);

}  // namespace octet
