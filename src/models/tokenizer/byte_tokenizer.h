// A small tokenizer.json of Octet's own, for models that are made up rather than trained: the 256
// bytes, merges for the words of captions, and the special tokens that the prompt template needs.
// It has the same form as Qwen's, so that every reader of that one reads it.
#pragma once

#include <string>

namespace octet::tokenizer {

// Ids from 0 without gaps: bytes, merged tokens, then <|endoftext|>, <|im_start|>, <|im_end|>.
std::string make_byte_tokenizer_json();

}  // namespace octet::tokenizer
