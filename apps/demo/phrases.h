// The tokens of a text, and what they mean one by one: names of things, colours, descriptions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "demo/grammar.h"
#include "demo/scene.h"

namespace octet::demo {

// A phrase of the table at some token, and how many tokens it takes.
struct Phrase {
  const Meaning* meaning = nullptr;
  size_t tokens = 0;

  bool is(Meaning::Kind kind) const { return meaning != nullptr && meaning->kind == kind; }
};

template <class T>
struct Named {
  T value;
  Span at;
};

// What stands before the noun that it describes, or after "in".
struct Description {
  std::vector<Named<Rgb>> colours;
  std::optional<Named<size_t>> count, font;
  std::optional<Named<Size>> size;
  std::optional<Named<bool>> capitals;
  std::vector<Span> plain;  // true of anything

  bool empty() const { return colours.empty() && !font && !size && !capitals; }
};

class Phrases {
 public:
  // Both must outlive it.
  Phrases(const std::vector<Token>& tokens, const Words& words);

  size_t size() const { return tokens_.size(); }
  const Token& operator[](size_t at) const { return tokens_[at]; }

  bool is_word(size_t at) const { return at < size() && tokens_[at].kind == Token::Kind::word; }
  bool is_mark(size_t at) const { return at < size() && tokens_[at].kind == Token::Kind::mark; }
  bool is(size_t at, std::string_view word) const { return at < size() && tokens_[at].is(word); }
  bool is_any(size_t at, std::initializer_list<std::string_view> words) const;
  bool is(size_t at, Role role) const { return is_word(at) && demo::is(tokens_[at].lower, role); }
  // How many words `phrase` has, which has single spaces; 0: they are not at `at`.
  size_t starts_with(size_t at, std::string_view phrase) const;
  bool is_text(size_t at) const;     // to be painted: a quotation, or capitals
  bool names_text(size_t at) const;  // "the word", "saying"
  // Counts and colours included; no function words, joints, marks and orders.
  bool is_content(size_t at) const;

  // The longest that there is.
  Phrase phrase_at(size_t at) const;
  std::optional<Rgb> colour_at(size_t at, size_t& taken) const;
  // Of the tokens from `at` on; `at` becomes the first that describes nothing.
  Description description_at(size_t& at) const;
  // Reads one token that describes what follows.
  bool describe(size_t at, Description& description) const;
  bool names_element(size_t at) const;
  // Whether an unknown word before `at` describes something known: "a lovely heart".
  bool leads_to_noun(size_t at) const;
  const Meaning* thing_named(const std::string& word) const;
  // The first of the joint and the articles directly before: "to the" of "to the left of".
  size_t with_joint(size_t at) const;

 private:
  bool joins_colours(size_t at) const;
  Named<size_t> joined_count(const std::optional<Named<size_t>>& before,
                             const Named<size_t>& last) const;

  const Words& words_;
  const std::vector<Token>& tokens_;
  bool is_emphasis(size_t first, size_t end) const;
  bool is_capitals(size_t at) const;
  bool is_beside_capitals(size_t at) const;

  bool capitals_are_text_ = true;
  std::vector<bool> emphasised_;  // in capitals, and read as any other word
};

}  // namespace octet::demo
