// The library's sentences name fields of requests, `guidance`; a user of the program knows flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "octet/sentence.h"

namespace octet::cli {

// The sentence with flags, of this command if it has them, instead of the fields; with the
// fields where no command is known yet.
std::string with_flags(const Sentence& sentence, const CLI::App* command);

}  // namespace octet::cli
