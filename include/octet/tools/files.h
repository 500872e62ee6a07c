// Writes result files.
#pragma once

#include <string>

#include "octet/export.h"

namespace octet {

// The file appears whole or not at all. Throws Error naming the path when it cannot be written.
OCTET_API void write_text_file(const std::string& path, const std::string& text);

// Throws the same Error when the file could not be created, and changes nothing otherwise. For the
// start of long work, whose result would be lost at its end. Of a pipe only the rights are asked
// for, not whether somebody reads it: opening it would be the end of the text for its reader.
OCTET_API void check_writable(const std::string& path);

// The file that would be written, by the one name that all its names lead to, whether or not it is
// there: links are followed, also to what does not exist. Empty where that cannot be told.
OCTET_API std::string written_file(const std::string& path);

// Removes what unfinished files have on disk. For a signal handler, as the last thing before the
// program ends: it may be called at any time, and no file that is being written is completed after.
OCTET_API void remove_temporary_files() noexcept;

}  // namespace octet
