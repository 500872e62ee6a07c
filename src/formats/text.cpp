#include "formats/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace octet {
namespace {

constexpr size_t kLongestQuote = 200;

// Characters that end a line, move the cursor or turn the direction of writing.
bool is_control(char32_t value) {
  return value < 0x20 || (value >= 0x7f && value < 0xa0) || value == 0x2028 || value == 0x2029 ||
         (value >= 0x202a && value <= 0x202e) || (value >= 0x2066 && value <= 0x2069);
}

std::string escaped(std::string_view text, bool escape_quotes, size_t longest) {
  std::string result;
  const size_t size = text.size();
  while (!text.empty()) {
    if (size - text.size() >= longest) return result + "...";
    const CodePoint point = first_code_point(text);
    if (point.length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (is_control(point.value)) {
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(point.value));
    } else {
      if (escape_quotes && (point.value == U'"' || point.value == U'\\')) result += '\\';
      result += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return result;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
  if (length == 0 || length > text.size() || lead > 0xf4) return {};
  char32_t value = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0u) != 0x80u) return {};
    value = (value << 6) | (next & 0x3fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kSmallest[length] || value > 0x10ffff || surrogate) return {};
  return {value, length};
}

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
  return '"' + escaped(text, true, kLongestQuote) + '"';
}

std::string one_line(std::string_view text) { return escaped(text, false, kLongestQuote); }

std::string without_controls(std::string_view text) {
  return escaped(text, false, std::numeric_limits<size_t>::max());
}

std::string listed(const std::vector<std::string>& names, size_t most) {
  std::string list;
  for (size_t i = 0; i < std::min(most, names.size()); ++i) {
    list += (i > 0 ? ", " : "") + in_quotes(names[i]);
  }
  if (names.size() > most) list += fmt::format(" and {} more", names.size() - most);
  return list;
}

}  // namespace octet
