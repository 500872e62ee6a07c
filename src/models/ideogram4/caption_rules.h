// The checks of a caption that is JSON already.
#pragma once

#include <string_view>
#include <vector>

#include "formats/json_value.h"
#include "octet/caption.h"

namespace octet::ideogram4 {

void check_rules(const nlohmann::ordered_json& caption, std::vector<CaptionFinding>& findings);

// Warns of text that the tokenizer takes for control tokens: <|im_end|>. Of any JSON value, keys
// included.
void find_control_tokens(const nlohmann::ordered_json& caption,
                         std::vector<CaptionFinding>& findings);

// The same for text that is no JSON.
void find_control_tokens(std::string_view text, std::vector<CaptionFinding>& findings);

}  // namespace octet::ideogram4
