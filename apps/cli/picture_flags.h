// The flags that say which pictures to make, for the commands that make them from captions.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "octet/generate.h"

namespace octet::cli {

// --seed: a number, or a random one that the user is told.
struct SeedArgument {
  uint64_t seed = 0;
  bool is_random = false;
};

void add_seed(CLI::App& command, SeedArgument& argument, const std::string& help);

// Draws a random one, and says so unless the flags are quiet.
uint64_t seed_from(const SeedArgument& argument, const CommonFlags& flags);

struct PictureArguments {
  GenerateRequest request;  // without what stands below
  SeedArgument seed;
  int64_t steps = 0, images = 1;
  std::optional<std::string> caption;  // a file, - or the JSON itself
  std::optional<std::string> prompt;   // plain text; one of the two is given
  bool wrap_text = false;
};

// Headings of the help.
inline constexpr const char* kModelOptions = "Model";
inline constexpr const char* kPictureOptions = "Picture";

// Parts of the model, caption, size, preset, noise, number; not the model or its linears.
void add_picture_flags(CLI::App& command, PictureArguments& arguments);

// Reads the caption.
GenerateRequest request_from(const PictureArguments& arguments, const CommonFlags& flags);

// What the user named as inputs of the request that was made from the arguments: files, folders and
// what is neither.
std::vector<std::string> inputs_of(const PictureArguments& arguments,
                                   const GenerateRequest& request);

}  // namespace octet::cli
