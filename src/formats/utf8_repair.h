// Text of programs that do not care for UTF-8, made such.
#pragma once

#include <string>
#include <string_view>

namespace octet {

// is_utf8(), fast where all of it is ASCII.
bool is_sound_utf8(std::string_view text);

// The text with U+FFFD in place of each byte that is not UTF-8.
std::string with_replacements(std::string_view text);

// `point` has to be a character: no surrogate, at most U+10FFFF.
void append_character(char32_t point, std::string& into);

// At most `limit` bytes, without half a character at the end.
std::string_view first_bytes(std::string_view text, size_t limit);

}  // namespace octet
