// The program's commands as its own definitions give them: the one source of the help pages, the
// man page and the shells' completions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octet::cli {

// A flag, an option with a value, or a positional argument.
struct Argument {
  std::vector<std::string> names;  // "-o", "--out"; the one name of a positional argument
  std::string value;               // "FILE", "int8|float"; empty: takes no value
  std::string help, default_value, group;
  bool is_positional = false, is_required = false, repeats = false;

  // The words of "int8|float", without those that stand for others: cuda:N.
  std::vector<std::string> choices() const;
  bool takes_path() const;
  std::string usage() const;  // "SOURCE", "[FILE...]"
};

struct Command {
  std::string name;  // "octet bench gemm"
  std::string summary, group;
  std::string footer;               // "Examples:" and lines that can be run
  std::vector<Argument> arguments;  // the positional ones first
  std::vector<Command> commands;

  std::string last_word() const;  // "gemm"
  std::string usage() const;      // "octet bench gemm [options]"
};

Command describe(const CLI::App& app);

// `root` and all commands below it, each before those that it holds.
std::vector<const Command*> all_commands(const Command& root);

}  // namespace octet::cli
