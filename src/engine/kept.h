// What a session keeps from one picture for the next.
#pragma once

#include <optional>

#include "engine/preview.h"
#include "engine/prompt_cache.h"

namespace octet::engine {

// Times of the last picture, for estimates; 0: unknown.
struct KeptTimes {
  double text_s_per_token = 0, evaluation_s_per_token = 0, decode_s_per_pixel = 0;
};

struct Kept {
  PromptCache prompts;
  std::optional<PreviewMap> preview = {};
  KeptTimes times = {};
};

}  // namespace octet::engine
