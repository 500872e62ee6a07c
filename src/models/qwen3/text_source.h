// A text encoder's files: which checkpoint, under which prefix, and the configuration that goes
// with them. Folders of Hugging Face, and single files of ComfyUI, which have no config.json.
#pragma once

#include <string>

#include "models/qwen3/config.h"
#include "weights/weight_source.h"

namespace octet::qwen3 {

struct TextSource {
  TextConfig config;
  std::string described_by;  // the file that says so: a config.json, or the checkpoint
  weights::WeightSource weights;
};

// `path`: a checkpoint, or a folder with one. The configuration is that of the config.json in the
// folder or next to the file. Without one it is the published one, if all shapes are.
TextSource open_text_encoder(const std::string& path);

}  // namespace octet::qwen3
