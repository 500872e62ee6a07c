// What the tokenizer needs of Unicode: code points from UTF-8, the normal form NFC, and
// the classes that the splitting rule names. The tables are utf8proc's, which is optional for a
// build: without it everything here that needs a table throws, and has_unicode_tables() says so.
//
// The tables are of one Unicode version (15.0 in Debian 12). A code point that was assigned later
// is in no class here, while a newer library may call it a letter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace octet::tokenizer {

enum class CharClass : uint8_t {
  letter,  // \p{L}
  number,  // \p{N}
  space,   // \s: the property White_Space
  other,
};

bool has_unicode_tables();

// Throws the sentence that says how to get them.
void require_unicode_tables();

CharClass class_of(char32_t point);

// Throws an Error that names the first byte which is not UTF-8, counted from `offset` bytes before
// the text.
std::u32string decode_utf8(std::string_view text, size_t offset = 0);

// The canonical composition. Canonical equivalents become one text: e and U+0301 become U+00E9.
std::u32string to_nfc(std::u32string_view text);

}  // namespace octet::tokenizer
