#include "base/escaped_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace octet {
namespace {

// Characters that end a line, move the cursor or turn the direction of writing.
bool is_control(char32_t value) {
  return value < 0x20 || (value >= 0x7f && value < 0xa0) || value == 0x061c || value == 0x200e ||
         value == 0x200f || (value >= 0x2028 && value <= 0x202e) ||
         (value >= 0x2066 && value <= 0x2069);
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

std::string escaped(std::string_view text, size_t longest, bool quotes) {
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
      if (quotes && (point.value == U'"' || point.value == U'\\')) result += '\\';
      result += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return result;
}

std::string without_controls(std::string_view text) {
  return escaped(text, std::numeric_limits<size_t>::max());
}

}  // namespace octet
