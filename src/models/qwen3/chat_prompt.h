// The prompt of the text encoder: Qwen's chat template around a caption, as text and as token ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/tokenizer.h"

namespace octet::qwen3 {

// The template counts as well; it takes 8 tokens in Qwen's vocabulary.
inline constexpr size_t kMaxPromptTokens = 2048;

// One message of the user and the start of the assistant's answer; no system message.
std::string chat_prompt(std::string_view caption);

// The ids of chat_prompt(caption). It is encoded as a whole, because a caption that begins with
// white space is merged with the template's line end. Literal special tokens in the caption become
// special tokens, as they do in the reference. Throws Error above kMaxPromptTokens.
std::vector<int32_t> encode_caption(const tokenizer::Tokenizer& tokenizer,
                                    std::string_view caption);

}  // namespace octet::qwen3
