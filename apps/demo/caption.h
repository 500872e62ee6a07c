// Plain text as a caption of what the demo's model can paint.
#pragma once

#include <string>
#include <string_view>

#include "demo/words.h"

namespace octet::demo {

// The same text gives the same caption. It must be UTF-8 without NUL bytes. Throws InvalidRequest
// where nothing in it is known.
std::string caption_from_text(std::string_view text, const Words& words);

}  // namespace octet::demo
