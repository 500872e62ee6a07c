// Whose arithmetic a run follows where the public implementations differ.
#pragma once

#include <string_view>

#include "base/error.h"
#include "formats/text.h"

namespace octet::ideogram4 {

enum class Convention {
  official,   // Ideogram's own code; the default
  diffusers,  // the pipeline of Hugging Face diffusers, for comparing with it
};

inline Convention convention_named(std::string_view name) {
  if (name == "official") return Convention::official;
  check(name == "diffusers", "convention: {} is unknown, expected official or diffusers",
        in_quotes(name));
  return Convention::diffusers;
}

}  // namespace octet::ideogram4
