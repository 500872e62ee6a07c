#include "models/tokenizer/byte_alphabet.h"

#include <array>

#include "formats/text.h"

namespace octet::tokenizer {
namespace {

std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next_substitute = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    alphabet[byte] = printable ? byte : next_substitute++;
  }
  return alphabet;
}

}  // namespace

char32_t symbol_of(uint8_t byte) {
  static const std::array<char32_t, 256> alphabet = make_alphabet();
  return alphabet[byte];
}

std::string in_byte_alphabet(const std::string& bytes) {
  std::string symbols;
  for (const char byte : bytes) append_character(symbol_of(static_cast<uint8_t>(byte)), symbols);
  return symbols;
}

}  // namespace octet::tokenizer
