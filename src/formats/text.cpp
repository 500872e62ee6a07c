#include "formats/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace octet {
namespace {

constexpr size_t kLongestQuote = 200;

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = first_code_point(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_sound_utf8(std::string_view text) {
  uint64_t bits = 0;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    bits |= word;
  }
  for (; at < text.size(); ++at) bits |= static_cast<uint8_t>(text[at]);
  return (bits & 0x8080808080808080) == 0 || is_utf8(text);
}

std::string with_replacements(std::string_view text) {
  std::string mended;
  while (!text.empty()) {
    const size_t length = first_code_point(text).length;
    mended += length == 0 ? std::string_view("\uFFFD") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return mended;
}

void append_character(char32_t point, std::string& into) {
  if (point < 0x80) {
    into += static_cast<char>(point);
    return;
  }
  // The first byte has as many high bits as there are bytes, the others have six bits each.
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  into += static_cast<char>(static_cast<uint8_t>(0xFF << (7 - more)) | (point >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    into += static_cast<char>(0x80 | ((point >> (6 * i)) & 0x3F));
  }
}

std::string_view first_bytes(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<uint8_t>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

std::string in_quotes(std::string_view text) {
  return '"' + escaped(text, kLongestQuote, /*quotes=*/true) + '"';
}

std::string one_line(std::string_view text) { return escaped(text, kLongestQuote); }

std::string listed(const std::vector<std::string>& names, size_t most) {
  std::string list;
  for (size_t i = 0; i < std::min(most, names.size()); ++i) {
    list += (i > 0 ? ", " : "") + in_quotes(names[i]);
  }
  if (names.size() > most) list += fmt::format(" and {} more", names.size() - most);
  return list;
}

}  // namespace octet
