// The flags that say which pictures to make by which model, for the commands that make them from
// captions.
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

// Headings of the help.
inline constexpr const char* kModelOptions = "Model";
inline constexpr const char* kPictureOptions = "Picture";

// --base, --uncond, --text-encoder, --vae and --tokenizer.
void add_part_flags(CLI::App& command, ModelOptions& options);

// --keep and --max-memory.
void add_memory_flags(CLI::App& command, ModelOptions& options);

// What --lora and its like mean.
std::vector<Lora> loras_from(const std::vector<std::string>& texts);

// Files and folders that the options name.
std::vector<std::string> files_of(const ModelOptions& options);

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
