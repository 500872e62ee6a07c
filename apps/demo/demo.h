// The demo: a picture from the small model that ships with Octet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/generate.h"

namespace octet {

// The seed that demo.json is rendered with.
inline constexpr uint64_t kDemoSeed = 7;

// A request for a picture of this caption (JSON, see octet/caption.h), by default demo.json in the
// model's folder; preset and size are the model's own. The model is searched in OCTET_DEMO_MODEL,
// then in share/octet/demo of the installation that this program belongs to, then, if it
// is not installed, in models/demo of the source tree it was built from. Throws Error if it is in
// none of them.
GenerateRequest demo_request(const std::string& caption = {});

// A caption for that model from plain text: objects, colours, places, and words to be painted, in
// quotes or capitals. `summary` says what is in it, `left_out` names whatever of the text is not,
// and `warnings` what nobody will see. Throws InvalidRequest if nothing in it can be painted, or a
// word has letters that the model does not know. For a model without words.json, the vocabulary,
// this is wrap_plain_text(), which leaves nothing out.
struct DemoPrompt {
  std::string caption;
  std::string summary;
  std::vector<std::string> left_out;
  std::vector<std::string> warnings;
};
DemoPrompt demo_prompt(const std::string& text);

}  // namespace octet
