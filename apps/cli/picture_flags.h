// The flags that say which pictures to make, for the commands that make them from captions.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "flags.h"
#include "octet/generate.h"

namespace octet::cli {

struct PictureArguments {
  GenerateRequest request;  // without what stands below
  int64_t steps = 0, seed = 0, images = 1;
  std::string caption;  // a file or -
  bool wrap_text = false;
};

// Parts of the model, caption, size, preset, noise, number; not the model or its linears.
void add_picture_flags(CLI::App& command, PictureArguments& arguments);

// Reads the caption.
GenerateRequest request_from(const PictureArguments& arguments, const CommonFlags& flags);

}  // namespace octet::cli
