// The parts of a model, opened and checked against each other before any weight is read.
#pragma once

#include <cstdint>

#include "models/ideogram4/config.h"
#include "models/ideogram4/model_folders.h"
#include "models/qwen3/text_encoder.h"
#include "models/tokenizer/tokenizer.h"

namespace octet::ideogram4 {

struct ModelParts {
  tokenizer::Tokenizer tokenizer;
  qwen3::TextEncoder text_encoder;
  ideogram4::DitConfig dit;  // of each transformer
  flux2_vae::VaeConfig vae;

  // Pixels of a token, along a side.
  int64_t token_side() const { return flux2_vae::kPatch * vae.factor(); }
};

// Throws Error when a part is not complete or belongs to another model. `unconditional`: whether
// the unconditional transformer has to be there.
ModelParts open_parts(const ModelFolders& folders, bool unconditional = true);

}  // namespace octet::ideogram4
