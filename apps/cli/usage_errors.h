// Wrong usage in one sentence, with the word that was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octet::cli {

// For main() to print: what is wrong with the arguments, what was expected, and the nearest remedy.
std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error);

// ", did you mean seed?" where the given word is near one of these, in any case; else empty.
std::string did_you_mean(const std::string& given, const std::vector<std::string>& words);

// "a, b or c"
std::string list_of(const std::vector<std::string>& words);

}  // namespace octet::cli
