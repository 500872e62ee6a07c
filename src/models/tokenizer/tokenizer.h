// Text to token ids: Qwen's byte-level BPE, which Ideogram 4 reads captions with.
//
// encode() cuts the text at added tokens (the longest that matches literally, before anything
// else); each piece between them becomes NFC, is split into units (pre_tokenizer.h), and the bytes
// of each unit are merged (bpe.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/tokenizer_file.h"

namespace octet::tokenizer {

class Tokenizer {
 public:
  // Reads a tokenizer.json. Throws Error with the reason when it is not one that Octet implements,
  // or when this build has no Unicode tables.
  explicit Tokenizer(const std::string& path);

  // The same for the text of such a file; `what` names it in errors.
  static Tokenizer from_json(std::string_view json, const std::string& what);

  // Throws Error when the text is not UTF-8, is longer than kMaxTextBytes, or has a byte that the
  // vocabulary lacks. May be called from several threads.
  std::vector<int32_t> encode(std::string_view utf8) const;

  static constexpr size_t kMaxTextBytes = 16 << 20;

  std::optional<int32_t> added_token(std::string_view content) const;

  // The embedding that ids index needs at least one row more than this.
  int32_t largest_id() const { return tables_.largest_id; }

 private:
  Tokenizer(TokenizerTables tables, std::string what);

  const AddedToken* match_added_token(std::string_view text) const;
  // `offset`: where the piece begins in the whole text.
  void encode_piece(std::string_view utf8, size_t offset, std::vector<int32_t>& ids) const;

  TokenizerTables tables_;
  std::string what_;
  // Indices into tables_.added_tokens by first byte, the longest first.
  std::array<std::vector<uint32_t>, 256> added_by_first_byte_;
};

}  // namespace octet::tokenizer
