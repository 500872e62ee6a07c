// One function per command: adds it to the program and says what runs when it is chosen.
#pragma once

#include <CLI/CLI.hpp>

#include "flags.h"

namespace octet::cli {

void add_devices(CLI::App& program, CommonFlags& flags);
void add_pull(CLI::App& program, CommonFlags& flags);
void add_list(CLI::App& program, CommonFlags& flags);
void add_rm(CLI::App& program, CommonFlags& flags);
void add_config(CLI::App& program, CommonFlags& flags);
void add_inspect(CLI::App& program, CommonFlags& flags);
void add_caption(CLI::App& program, CommonFlags& flags);
void add_bench(CLI::App& program, CommonFlags& flags);
void add_tune(CLI::App& program, CommonFlags& flags);
void add_map(CLI::App& program, CommonFlags& flags);
void add_plan(CLI::App& program, CommonFlags& flags);
void add_audit(CLI::App& program, CommonFlags& flags);
void add_demo(CLI::App& program, CommonFlags& flags);
void add_serve(CLI::App& program, CommonFlags& flags);
void add_quantize(CLI::App& program, CommonFlags& flags);
void add_generate(CLI::App& program, CommonFlags& flags);
void add_compare(CLI::App& program, CommonFlags& flags);
void add_certify(CLI::App& program, CommonFlags& flags);
void add_completion(CLI::App& program, CommonFlags& flags);
void add_man(CLI::App& program, CommonFlags& flags);
void add_help(CLI::App& program, CommonFlags& flags);

}  // namespace octet::cli
