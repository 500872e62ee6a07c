// The alphabet in which a byte-level vocabulary is written: one printable character per byte.
#pragma once

#include <cstdint>
#include <string>

namespace octet::tokenizer {

// The bytes 33-126, 161-172 and 174-255 are the characters of the same number; the other 68, in
// increasing order, are U+0100, U+0101, ... so a space is U+0120 and a line feed U+010A.
char32_t symbol_of(uint8_t byte);

// A whole text in that alphabet, as UTF-8.
std::string in_byte_alphabet(const std::string& bytes);

}  // namespace octet::tokenizer
