// A transformer's files: which checkpoint, under which prefix, and the configuration that goes with
// them. Folders of Hugging Face, single files of ComfyUI, files that hold both branches, and files
// that hold only what was quantized and need a base for the rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/family.h"
#include "models/ideogram4/config.h"
#include "weights/weight_source.h"

namespace octet::ideogram4 {

using models::PartFiles;

struct DitSource {
  DitConfig config;
  weights::WeightSource weights;
};

// The configuration is that of config.json where there is one, else what a file says about itself
// in its metadata, else what the shapes of its tensors say.
DitSource open_dit(const PartFiles& files, bool conditional);

// As a checkpoint keeps it in its metadata, see weights::kConfigEntry.
std::string config_text(const DitConfig& config);

// Whether the checkpoint at `path` has this branch, whatever the prefix of its names.
bool has_branch(const std::string& path, bool conditional);

// Which one branch a file is, where octet quantize noted it: true for the conditional one. Nothing
// for all others, and for what cannot be read.
std::optional<bool> noted_branch(const std::string& path);

// Whether `path` is a checkpoint, or a folder with one, that has either branch.
bool is_dit(const std::string& path);

// Tensors that a transformer's file may have and that are not read, by the name behind the prefix
// or, where it has another, by the whole name: the other branch, and other parts of a model.
bool is_ignored(std::string_view name, bool conditional);

}  // namespace octet::ideogram4
