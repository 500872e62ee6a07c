// What --help prints of one command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octet::cli {

// In place of CLI11's own formatter, which neither wraps lines nor leaves out what excludes what.
class HelpPage : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

// Options that all commands share stand last, under this heading.
inline constexpr const char* kCommonOptions = "Common options";

// Puts options under a heading of their own; others stand under "Options".
void set_group(CLI::App& command, const std::string& heading,
               const std::vector<std::string>& options);

// The last lines of a command's help: commands that work as they stand.
void set_examples(CLI::App& command, const std::vector<std::string>& lines);

}  // namespace octet::cli
