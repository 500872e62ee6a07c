// Plain text as words, quotations and marks, and the English words that join what a picture shows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demo/scene.h"

namespace octet::demo {

struct Token {
  enum class Kind { word, quote, colour, mark };
  Kind kind = Kind::word;
  std::string text;     // as it was written; of a quotation what is between the quotes
  std::string lower;    // of a word
  bool joined = false;  // to the word before it, by a hyphen

  bool is(std::string_view word) const { return kind == Kind::word && lower == word; }
};

// Words with hyphens are several. Quotes of all scripts count as plain ones, and so do, outside of
// quotations, other marks and spaces; a quote that nobody closes is left out. A backslash and an n
// are a line break.
std::vector<Token> tokens_of(std::string_view text);

// Two capitals or more and no small letters.
bool is_shouted(const Token& token);

// What an English word does between the names of things; one may do several.
enum class Role {
  // Says nothing that could be missing on a picture: articles, "and", "please draw". The list is
  // closed; every other word is content.
  function,
  article,
  pronoun,          // for what was named before: it, them
  plain_adjective,  // true of all that this model paints: flat, solid
  connector,        // and, with: something new may follow
  joint,            // in, on, from: content if what follows is on the picture, else part of it
  preposition,      // no word that somebody wants painted
  negation,         // no, without
  letters,          // nouns for them: "text". What follows may be the text, unless it is known
  typeface,         // nouns that end what is said of letters: "in a thin font"
  names_a_word,     // the next word is the text, whatever it means: "word", "titled"
  picture_term,     // of pictures and their files, written in capitals: "PNG"
  names_words,      // all words that follow are: "saying"
};
bool is(std::string_view word, Role role);

// Counts, also vague ones; "1,000" is one, "2.5" is none.
std::optional<size_t> number_of(std::string_view word);
std::optional<Size> size_of(std::string_view word);
// Where what follows lies relative to what precedes: "above" puts it below.
std::optional<Order> order_of(std::string_view word);
Order opposite(Order order);
// Of letters: true for capitals.
std::optional<bool> case_of(std::string_view word);

}  // namespace octet::demo
