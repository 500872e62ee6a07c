// The added tokens of Qwen's vocabulary. A tokenizer takes them out of any text before it reads the
// rest, so a caption that spells one does not say it: it holds a control token there.
#pragma once

#include <string_view>

namespace octet::tokenizer {

inline constexpr std::string_view kAddedTokens[] = {
    "<|endoftext|>",  "<|im_start|>",       "<|im_end|>",      "<|object_ref_start|>",
    "<|box_start|>",  "<|object_ref_end|>", "<|box_end|>",     "<|quad_start|>",
    "<|quad_end|>",   "<|vision_start|>",   "<|vision_end|>",  "<|vision_pad|>",
    "<|image_pad|>",  "<|video_pad|>",      "<tool_call>",     "</tool_call>",
    "<|fim_prefix|>", "<|fim_middle|>",     "<|fim_suffix|>",  "<|fim_pad|>",
    "<|repo_name|>",  "<|file_sep|>",       "<tool_response>", "</tool_response>",
    "<think>",        "</think>",
};

}  // namespace octet::tokenizer
