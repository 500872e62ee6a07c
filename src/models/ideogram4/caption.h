// The JSON caption: a text from anywhere in, findings and the canonical text out.
//
// Differences to the official verifier, on purpose:
//  - The tokenizer gets the canonical text, also where the file is pretty-printed, mixes escapes
//    with literal UTF-8 or has another order of the root's keys, which the verifier lets pass
//    verbatim. A valid caption that is canonical already keeps its every byte.
//  - Unknown keys are warned about, not refused, and stay; aspect_ratio is left out.
//  - Refused as well: duplicate keys, lone surrogates (`\ud800`), NaN and Infinity, raw NUL bytes,
//    texts above kMaxCaptionBytes, `true` and `false` in a box.
//  - Warned about: values of another type where a string belongs, no high_level_description, and
//    text that the tokenizer takes for control tokens.
//  - Where the verifier stops at a fault, the checks go on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json_value.h"
#include "octet/caption.h"

namespace octet::models {
struct TrainedFor;
}

namespace octet::ideogram4 {

// The model takes 2048 tokens; no script of that length comes near this.
inline constexpr size_t kMaxCaptionBytes = 65'536;

CaptionReport check_caption(std::string_view text);

// What the tokenizer is to get; throws Error with the errors of an invalid caption. `any` takes it
// with its errors, unless it cannot be text for a tokenizer: see CaptionReport::as_given. `what`
// begins the sentence: a file name, say.
std::string caption_for_model(std::string_view text, const std::string& what, bool any = false);

// The warnings about it as sentences, with `any` also the errors.
std::vector<Sentence> caption_warnings(std::string_view text, const std::string& what,
                                       bool any = false);

// Family::leaves_training.
std::vector<std::string> leaves_training(const std::string& prompt,
                                         const models::TrainedFor& model);

// Compact JSON with literal UTF-8, as Python's json.dumps(ensure_ascii=False, separators=(",",":"))
// writes it. Known keys that are not in canonical order are sorted before unknown ones. Takes any
// JSON value.
std::string serialise_caption(const nlohmann::ordered_json& caption);

// The caption without the faults that can be mended: see CaptionReport::canonical.
nlohmann::ordered_json mend_caption(const nlohmann::ordered_json& caption);

// The text becomes both the high_level_description and the background, the one required string: an
// empty background would describe an empty picture, and an element would claim that the text is
// about one object. White space around the text is dropped.
std::string wrap_plain_text(std::string_view plain_text);

// Also without a byte order mark.
std::string_view without_space_around(std::string_view text);

}  // namespace octet::ideogram4
