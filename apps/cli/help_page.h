// What --help prints of one command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace octet::cli {

// In place of CLI11's own formatter, which neither wraps lines nor leaves out what excludes what.
class HelpPage : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace octet::cli
