#include "models/tokenizer/unicode.h"

#if OCTET_HAS_UTF8PROC
#include <utf8proc.h>
#endif

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "formats/text.h"

namespace octet::tokenizer {
namespace {

bool is_space(char32_t point) {
  return (point >= 0x09 && point <= 0x0d) || point == 0x20 || point == 0x85 || point == 0xa0 ||
         point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
         point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

}  // namespace

std::u32string decode_utf8(std::string_view text, size_t offset) {
  std::u32string points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = first_code_point(text.substr(at));
    check(point.length > 0,
          "the text is not UTF-8: byte {} (0x{:02x}) does not begin a valid character", offset + at,
          static_cast<unsigned char>(text[at]));
    points.push_back(point.value);
    at += point.length;
  }
  return points;
}

#if OCTET_HAS_UTF8PROC

bool has_unicode_tables() { return true; }
void require_unicode_tables() {}

CharClass class_of(char32_t point) {
  if (is_space(point)) return CharClass::space;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharClass::number;
    default: return CharClass::other;
  }
}

std::u32string to_nfc(std::u32string_view text) {
  // Every code point below U+0300 is its own canonical composition.
  if (std::ranges::all_of(text, [](char32_t point) { return point < 0x300; })) {
    return std::u32string(text);
  }
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (const char32_t point : text) {
    utf8proc_int32_t parts[8];  // no canonical decomposition has more than four
    int last_class = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(point), parts, 8,
                                               kOptions, &last_class);
    check(count >= 0 && count <= 8, "U+{:04X} cannot be decomposed: {}",
          static_cast<uint32_t>(point), utf8proc_errmsg(count));
    points.insert(points.end(), parts, parts + count);
  }
  // Runs of combining marks are ordered by their class. utf8proc would do it as well, but in
  // quadratic time, and a text of nothing but marks is a valid one.
  const auto combining = [](utf8proc_int32_t point) {
    return utf8proc_get_property(point)->combining_class;
  };
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(), [&](auto p) { return combining(p) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return combining(a) < combining(b); });
    begin = end == points.end() ? end : end + 1;
  }
  const auto length = utf8proc_normalize_utf32(
      points.data(), static_cast<utf8proc_ssize_t>(points.size()), kOptions);
  check(length >= 0, "the text cannot be normalized: {}", utf8proc_errmsg(length));
  return {points.begin(), points.begin() + length};
}

#else

bool has_unicode_tables() { return false; }
void require_unicode_tables() {
  fail("this build has no utf8proc; install libutf8proc-dev and build again");
}

CharClass class_of(char32_t point) {
  if (is_space(point)) return CharClass::space;
  require_unicode_tables();
  return CharClass::other;
}

std::u32string to_nfc(std::u32string_view text) {
  require_unicode_tables();
  return std::u32string(text);
}

#endif

}  // namespace octet::tokenizer
