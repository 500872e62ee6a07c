#include "models/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"
#include "models/tokenizer/pre_tokenizer.h"
#include "models/tokenizer/unicode.h"

namespace octet::tokenizer {
namespace {

TokenizerTables read_tables(const std::string& path) {
  require_unicode_tables();
  return parse_tokenizer(read_json_file(path), path);
}

}  // namespace

Tokenizer::Tokenizer(const std::string& path) : Tokenizer(read_tables(path), path) {}

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& what) {
  require_unicode_tables();
  return Tokenizer(parse_tokenizer(parse_json(json, what), what), what);
}

Tokenizer::Tokenizer(TokenizerTables tables, std::string what)
    : tables_(std::move(tables)), what_(std::move(what)) {
  const auto& added = tables_.added_tokens;
  for (size_t i = 0; i < added.size(); ++i) {
    const auto first = static_cast<unsigned char>(added[i].content[0]);
    added_by_first_byte_[first].push_back(static_cast<uint32_t>(i));
  }
  for (auto& bucket : added_by_first_byte_) {
    std::ranges::sort(bucket, [&](uint32_t a, uint32_t b) {
      return added[a].content.size() > added[b].content.size();
    });
  }
}

std::optional<int32_t> Tokenizer::added_token(std::string_view content) const {
  for (const AddedToken& token : tables_.added_tokens) {
    if (token.content == content) return token.id;
  }
  return std::nullopt;
}

const AddedToken* Tokenizer::match_added_token(std::string_view text) const {
  for (const uint32_t index : added_by_first_byte_[static_cast<unsigned char>(text[0])]) {
    const AddedToken& token = tables_.added_tokens[index];
    if (text.starts_with(token.content)) return &token;
  }
  return nullptr;
}

std::vector<int32_t> Tokenizer::encode(std::string_view utf8) const {
  check(utf8.size() <= kMaxTextBytes, "the text is {} bytes long, above the limit of {}",
        utf8.size(), kMaxTextBytes);
  std::vector<int32_t> ids;
  size_t piece = 0;  // where the text that is not encoded yet begins
  for (size_t at = 0; at < utf8.size();) {
    const AddedToken* token = match_added_token(utf8.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    encode_piece(utf8.substr(piece, at - piece), piece, ids);
    ids.push_back(token->id);
    at += token->content.size();
    piece = at;
  }
  encode_piece(utf8.substr(piece), piece, ids);
  return ids;
}

void Tokenizer::encode_piece(std::string_view utf8, size_t offset,
                             std::vector<int32_t>& ids) const {
  std::u32string points = decode_utf8(utf8, offset);
  if (tables_.normalizes) points = to_nfc(points);
  std::string bytes;
  std::vector<int32_t> tokens;
  for (size_t begin = 0; begin < points.size();) {
    const size_t end = end_of_unit(points, begin);
    bytes.clear();
    for (size_t i = begin; i < end; ++i) append_character(points[i], bytes);
    tokens.clear();
    for (const char byte : bytes) {
      const int32_t id = tables_.byte_ids[static_cast<unsigned char>(byte)];
      check(id >= 0, "{}: the vocabulary has no token for the byte 0x{:02x}, which is in {}", what_,
            static_cast<unsigned char>(byte), Quoted{bytes});
      tokens.push_back(id);
    }
    tables_.merges.apply(tokens);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    begin = end;
  }
}

}  // namespace octet::tokenizer
