// Flags that several commands take, and how the words of a user become values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace octet::cli {

struct CommonFlags {
  std::string device = "auto";
  std::string json;  // path, "-" or empty
  int threads = 0;   // 0: one per physical core
  bool verbose = false;
  bool quiet = false;
};

// --json, -v and -q: every command takes them.
void add_output_flags(CLI::App& command, CommonFlags& flags);

// --device and --threads: for commands that compute.
void add_device_flags(CLI::App& command, CommonFlags& flags);

// A number of seconds from 0 to `most`.
void add_seconds(CLI::App& command, const std::string& flag, double& seconds, double most,
                 const std::string& help);

// Wrong usage in one sentence, for main() to print: what is wrong with the arguments, what was
// expected, and which help to read.
std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error);

}  // namespace octet::cli
