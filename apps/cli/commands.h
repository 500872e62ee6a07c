// One function per command: adds it to the program and says what runs when it is chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace octet::cli {

// Flags that every command takes.
struct CommonFlags {
  std::string device = "auto";
  std::string json;  // path, "-" or empty
  int threads = 0;
  bool verbose = false;
  bool quiet = false;
};

void add_devices(CLI::App& program, CommonFlags& flags);
void add_inspect(CLI::App& program, CommonFlags& flags);
void add_bench(CLI::App& program, CommonFlags& flags);
void add_demo(CLI::App& program, CommonFlags& flags);

// Declares the flags on a command.
void add_common_flags(CLI::App& command, CommonFlags& flags);

}  // namespace octet::cli
