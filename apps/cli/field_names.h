// The library's sentences write fields of requests in backquotes, `guidance`; a user of the program
// knows flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace octet::cli {

// The sentence with flags, of this command where it has them, in place of the fields.
std::string with_flags(std::string_view sentence, const CLI::App& command);

}  // namespace octet::cli
