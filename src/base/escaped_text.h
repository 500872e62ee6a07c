// Text that anybody may have written, made fit for a message: one line of UTF-8 that cannot drive
// the terminal which shows it. Errors and log lines pass through here (base/error.cpp).
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace octet {

struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  // bytes taken; 0 when the text does not begin with a valid sequence
};

// Decodes the first code point. Overlong forms, surrogates and values above U+10FFFF are invalid.
CodePoint first_code_point(std::string_view text);

// Control characters and bytes that are not UTF-8 become escapes, `quotes` also puts backslashes
// before quotes and backslashes, and a text of more than `longest` bytes is cut and ends with
// "...".
std::string escaped(std::string_view text, size_t longest, bool quotes = false);

// The same without a limit. Backslashes stay as they are, so that text which was made safe before
// does not change.
std::string without_controls(std::string_view text);

}  // namespace octet
