// Where the parts of a model lie: a folder as Hugging Face lays it out, parts of it replaced.
#pragma once

#include <string>

namespace octet::pipeline {

struct ModelFolders {
  std::string transformer;    // config.json and weights
  std::string unconditional;  // likewise
  std::string text_encoder;   // likewise
  std::string vae;            // likewise
  std::string tokenizer;      // the file tokenizer.json
};

struct FolderChoices {
  std::string model;          // with model_index.json and one folder per part
  std::string unconditional;  // the folders of single parts, or of models to take them from
  std::string text_encoder;
  std::string vae;
  std::string fallback;  // a model whose parts are taken where neither of the above has them
};

// Throws Error, naming the path, for what is missing.
ModelFolders find_folders(const FolderChoices& choices);

}  // namespace octet::pipeline
