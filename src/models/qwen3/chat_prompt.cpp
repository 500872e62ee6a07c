#include "models/qwen3/chat_prompt.h"

#include "base/error.h"

namespace octet::qwen3 {
namespace {

constexpr std::string_view kMessageStart = "<|im_start|>";
constexpr std::string_view kMessageEnd = "<|im_end|>";

}  // namespace

std::string chat_prompt(std::string_view caption) {
  return fmt::format("{0}user\n{2}{1}\n{0}assistant\n", kMessageStart, kMessageEnd, caption);
}

std::vector<int32_t> encode_caption(const tokenizer::Tokenizer& tokenizer,
                                    std::string_view caption) {
  for (const std::string_view token : {kMessageStart, kMessageEnd}) {
    check(tokenizer.added_token(token).has_value(),
          "the tokenizer has no added token {}, which the prompt template needs; use the "
          "tokenizer.json of the model",
          token);
  }
  std::vector<int32_t> ids = tokenizer.encode(chat_prompt(caption));
  check(ids.size() <= kMaxPromptTokens,
        "the caption has {} tokens with the prompt template, at most {} are allowed; shorten it",
        ids.size(), kMaxPromptTokens);
  return ids;
}

}  // namespace octet::qwen3
