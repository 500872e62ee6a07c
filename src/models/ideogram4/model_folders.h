// Where the parts of a model lie: a folder as Hugging Face lays it out, parts of it replaced, or
// single files.
#pragma once

#include <string>

#include "models/ideogram4/dit_source.h"

namespace octet::ideogram4 {

struct ModelFolders {
  ideogram4::DitFiles transformer;
  // The same file, when it holds both branches; an empty path, when it was not asked for.
  ideogram4::DitFiles unconditional;
  std::string text_encoder;  // a checkpoint, or a folder with one and its config.json
  std::string vae;           // likewise
  std::string tokenizer;     // the file tokenizer.json
};

struct FolderChoices {
  // With model_index.json and one folder per part, or the conditional transformer alone: its folder
  // or its file, which may hold both branches.
  std::string model;
  std::string unconditional;  // files or folders of single parts, or models to take them from
  std::string text_encoder;
  std::string vae;
  std::string tokenizer;  // tokenizer.json, or a folder or a model with it
  std::string base;       // a model that gives what `model` does not have: parts, or single weights
  std::string fallback;   // a model whose parts are taken where neither of the above has them
  bool guided = true;     // otherwise nobody looks for the unconditional transformer
};

// Throws Error, naming the path, for what is missing.
ModelFolders find_folders(const FolderChoices& choices);

// The transformers of a model's folder, or the one (or two) of a file; `base` as above.
struct Transformers {
  ideogram4::DitFiles conditional, unconditional;  // the path is empty where there is none
};
Transformers find_transformers(const std::string& model, const std::string& base,
                               bool single_is_unconditional);

}  // namespace octet::ideogram4
