// Reads a tokenizer.json, as the `tokenizers` library writes it, of the one kind that Octet
// implements: byte-level BPE with Qwen's splitting rule. Everything in the file that would change
// ids and is not implemented is refused. "truncation", "padding" and "decoder" are not read: the
// first two are set again by each caller of that library, the last works in the other direction.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/json_value.h"
#include "models/tokenizer/bpe.h"

namespace octet::tokenizer {

inline constexpr int32_t kMaxTokenId = (1 << 24) - 1;

struct AddedToken {
  std::string content;  // never empty
  int32_t id;
};

struct TokenizerTables {
  std::array<int32_t, 256> byte_ids;  // the token of each single byte; -1: the vocabulary lacks it
  MergeTable merges;
  std::vector<AddedToken> added_tokens;  // no two with the same content or the same id
  bool normalizes = false;               // text becomes NFC before it is split
  int32_t largest_id = 0;
};

// `what` begins every error sentence: the name of the file.
TokenizerTables parse_tokenizer(const nlohmann::json& root, const std::string& what);

}  // namespace octet::tokenizer
