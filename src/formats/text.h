// UTF-8 as the file formats need it: repair of what is none, and quoting of untrusted text.
//
// Names in files are chosen by strangers. Whatever of them goes into an error message passes
// through in_quotes(), which shows where it begins and ends.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/escaped_text.h"

namespace octet {

// `point` has to be a character: no surrogate, at most U+10FFFF.
void append_character(char32_t point, std::string& into);

bool is_utf8(std::string_view text);
// The same, fast where all of it is ASCII.
bool is_sound_utf8(std::string_view text);

// The text with U+FFFD instead of each byte that is not UTF-8.
std::string with_replacements(std::string_view text);

// At most `limit` bytes, without half a character at the end.
std::string_view first_bytes(std::string_view text, size_t limit);

// The text in double quotes for a message: control characters and bytes that are not UTF-8 become
// escapes, and a text of more than 200 bytes is cut and ends with "...".
std::string in_quotes(std::string_view text);

// The same as an argument of check(), which quotes it only when it fails.
struct Quoted {
  std::string_view text;
};

// The same without the quotes, for text that is already part of a sentence.
std::string one_line(std::string_view text);

// Names in quotes for a message, cut after the first few: "a", "b" and 7 more.
std::string listed(const std::vector<std::string>& names, size_t most);

}  // namespace octet

template <>
struct fmt::formatter<octet::Quoted> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const octet::Quoted& quoted, Context& context) const {
    return fmt::formatter<std::string>::format(octet::in_quotes(quoted.text), context);
  }
};
