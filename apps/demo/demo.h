// The demo: a picture by the small model that comes with Octet.
#pragma once

#include <cstdint>
#include <string>

#include "octet/generate.h"

namespace octet {

// Of the noise that demo.json is painted from.
inline constexpr uint64_t kDemoSeed = 7;

// A request for a picture of this caption (JSON, see octet/caption.h), or of the one that lies in
// the model's folder as demo.json; preset and size are the model's own.
//
// The model is in the folder that OCTET_DEMO_MODEL names, else in share/octet/demo of the
// installation that this program belongs to, else in models/demo of the source tree that
// it was built from and not installed. Throws Error where it is in none of them.
GenerateRequest demo_request(const std::string& caption = {});

// A caption for that model of what plain text asks for: things, colours, places, and words to be
// painted, which stand in quotes or in capitals. What else is in the text is left out; throws
// InvalidRequest where nothing is left. A model whose folder has no words.json, the list of what is
// known, gets what wrap_plain_text() makes of it.
std::string demo_caption(const std::string& text);

}  // namespace octet
