// The parts of a model, opened and checked against each other before any weight is read.
#pragma once

#include <cstdint>

#include "models/ideogram4/config.h"
#include "models/ideogram4/text_encoder.h"
#include "models/ideogram4/tokenizer.h"
#include "pipeline/model_folders.h"

namespace octet::pipeline {

struct ModelParts {
  ideogram4::Tokenizer tokenizer;
  ideogram4::TextEncoder text_encoder;
  ideogram4::DitConfig dit;  // of each transformer
  ideogram4::VaeConfig vae;

  // Pixels of a token, along a side.
  int64_t token_side() const { return ideogram4::kPatch * vae.factor(); }
};

// Throws Error when a part is not complete or belongs to another model. `unconditional`: whether
// the unconditional transformer has to be there.
ModelParts open_parts(const ModelFolders& folders, bool unconditional = true);

}  // namespace octet::pipeline
