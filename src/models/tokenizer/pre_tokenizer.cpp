#include "models/tokenizer/pre_tokenizer.h"

#include "models/tokenizer/unicode.h"

namespace octet::tokenizer {
namespace {

bool ends_line(char32_t point) { return point == U'\r' || point == U'\n'; }

// The letter that a case-insensitive match compares. U+017F, the long s, folds to s as well; no
// other character beyond ASCII folds to one of the letters of the contractions.
char32_t folded(char32_t point) {
  if (point >= U'A' && point <= U'Z') return point + 32;
  return point == 0x17f ? U's' : point;
}

// One text and a place in it. Each function answers for one alternative: where its match ends, or
// `begin` when it does not match.
struct Scanner {
  std::u32string_view text;
  size_t begin;

  bool is(size_t at, CharClass wanted) const {
    return at < text.size() && class_of(text[at]) == wanted;
  }
  size_t end_of_run(size_t at, CharClass wanted) const {
    while (is(at, wanted)) ++at;
    return at;
  }
  size_t end_of_lines(size_t at) const {
    while (at < text.size() && ends_line(text[at])) ++at;
    return at;
  }

  size_t contraction() const {
    if (text[begin] != U'\'' || begin + 1 == text.size()) return begin;
    const char32_t first = folded(text[begin + 1]);
    if (first == U's' || first == U't' || first == U'm' || first == U'd') return begin + 2;
    if (begin + 2 == text.size()) return begin;
    const char32_t second = folded(text[begin + 2]);
    const bool matches =
        ((first == U'r' || first == U'v') && second == U'e') || (first == U'l' && second == U'l');
    return matches ? begin + 3 : begin;
  }

  size_t letters() const {
    const CharClass first = class_of(text[begin]);
    if (first == CharClass::letter) return end_of_run(begin, CharClass::letter);
    const bool may_lead = first != CharClass::number && !ends_line(text[begin]);
    if (!may_lead || !is(begin + 1, CharClass::letter)) return begin;
    return end_of_run(begin + 1, CharClass::letter);
  }

  size_t digit() const { return is(begin, CharClass::number) ? begin + 1 : begin; }

  size_t punctuation() const {
    const size_t first = text[begin] == U' ' ? begin + 1 : begin;
    const size_t end = end_of_run(first, CharClass::other);
    return end == first ? begin : end_of_lines(end);
  }

  // The last three alternatives: only white space is left for them.
  size_t white_space() const {
    const size_t end = end_of_run(begin, CharClass::space);
    for (size_t last = end; last > begin; --last) {
      if (ends_line(text[last - 1])) return last;
    }
    const bool before_a_word = end < text.size() && end - begin > 1;
    return before_a_word ? end - 1 : end;
  }
};

}  // namespace

size_t end_of_unit(std::u32string_view text, size_t begin) {
  const Scanner scanner{text, begin};
  for (const auto alternative :
       {&Scanner::contraction, &Scanner::letters, &Scanner::digit, &Scanner::punctuation}) {
    const size_t end = (scanner.*alternative)();
    if (end > begin) return end;
  }
  return scanner.white_space();
}

}  // namespace octet::tokenizer
