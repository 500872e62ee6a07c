// The flags that say what a model is and how it runs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "flags.h"
#include "octet/engine.h"

namespace octet::cli {

// The heading of the help.
inline constexpr const char* kModelOptions = "Model";

// --base, --uncond, --text-encoder, --vae and --tokenizer.
void add_part_flags(CLI::App& command, ModelOptions& options);

// --keep and --max-memory.
void add_memory_flags(CLI::App& command, ModelOptions& options);

// --linears and --path, of which a command takes one; `whose` is the help of the first.
void add_linears_flags(CLI::App& command, Linears& linears, const std::string& whose);

void add_require_int8(CLI::App& command, bool& required);

// --tune of commands that measure.
void add_first_tuning(CLI::App& command, Tuning& tuning);

// What --lora and its like mean.
std::vector<Lora> loras_from(const std::vector<std::string>& texts);

// Files and folders that the options name.
std::vector<std::string> files_of(const ModelOptions& options);

}  // namespace octet::cli
