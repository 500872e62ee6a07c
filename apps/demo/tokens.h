// Plain text as words, quotations and marks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet::demo {

struct Token {
  enum class Kind { word, quote, colour, mark };
  Kind kind = Kind::word;
  std::string text;   // as it was written; of a quotation what is between the quotes
  std::string lower;  // of a word

  bool is(std::string_view word) const { return kind == Kind::word && lower == word; }
};

// Words with hyphens are several. Typographic quotes count as plain ones, and a quote that nobody
// closes is left out.
std::vector<Token> tokens_of(std::string_view text);

// Two capitals or more, and digits.
bool is_shouted(const Token& token);

}  // namespace octet::demo
