// Writes result files.
#pragma once

#include <string>

#include "octet/export.h"

namespace octet {

// The file appears whole or not at all. Throws Error with the path if it cannot be written.
OCTET_API void write_text_file(const std::string& path, const std::string& text);

// Throws the same Error if the file could not be created, and otherwise changes nothing. Call it
// before long work whose result would be lost at the end. For a pipe it only checks permissions,
// not whether there is a reader: opening and closing it would be end-of-file for the reader.
OCTET_API void check_writable(const std::string& path);

// Makes the folder that the file is to be in, and those above it, unless they are there.
OCTET_API void make_folder_of(const std::string& path);

// The canonical path of the file that would be written, whether or not it exists: links are
// followed, even dangling ones. Empty if it cannot be determined.
OCTET_API std::string written_file(const std::string& path);

// Removes unfinished files from disk. For a signal handler, as the last thing before the program
// ends: it may be called at any time, and no file that is being written is completed afterwards.
OCTET_API void remove_temporary_files() noexcept;

}  // namespace octet
