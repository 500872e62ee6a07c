// The flags that say which pictures to make, for the commands that make them from captions.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caption_flags.h"
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

void add_steps(CLI::App& command, int& steps);

struct PictureArguments {
  GenerateRequest request;  // without what stands below
  CaptionWords captions;
  std::optional<std::string> size;  // none: the model's
  std::string noise;                // its file
  SeedArgument seed;
};

// The heading of the help.
inline constexpr const char* kPictureOptions = "Picture";

// Parts of the model and its memory, captions, size, preset, noise, number; not the model or its
// linears.
void add_picture_flags(CLI::App& command, PictureArguments& arguments);

// All but the captions. Reads the noise.
GenerateRequest request_from(const PictureArguments& arguments, const CommonFlags& flags);

// The same with the words of a caption.
PictureRequest with_caption(PictureRequest request, const NamedCaption& caption);

// What the user named as inputs: files, folders and what is neither.
std::vector<std::string> inputs_of(const PictureArguments& arguments,
                                   const GenerateRequest& request);

}  // namespace octet::cli
