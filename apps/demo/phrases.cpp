#include "demo/phrases.h"

#include <algorithm>
#include <span>

namespace octet::demo {

Phrases::Phrases(const std::vector<Token>& tokens, const Words& words)
    : words_(words), tokens_(tokens) {
  // Capitals say nothing in a text that has no other letters, unless they are all there is.
  bool any_known = false, any_quiet = false;
  for (size_t i = 0; i < size(); ++i) {
    any_known |= phrase_at(i).meaning != nullptr;
    any_quiet |= is_word(i) && tokens_[i].text == tokens_[i].lower && !number_of(tokens_[i].lower);
  }
  capitals_are_text_ = any_quiet || !any_known;
  emphasised_.assign(size(), false);
  for (size_t first = 0, end; first < size(); first = end + 1) {
    for (end = first; end < size() && is_shouted(tokens_[end]);) {
      // "NOT A STAR"
      const bool is_letter = is_any(end + 1, {"a", "i"}) && end + 2 < size() &&
                             tokens_[end + 1].text != tokens_[end + 1].lower &&
                             is_shouted(tokens_[end + 2]);
      end += is_letter ? 2 : 1;
    }
    if (end == first) continue;
    const bool is_all = is_emphasis(first, end);
    const bool is_named = first > 0 && names_text(first - 1);
    for (size_t i = first; i < end; ++i) {
      emphasised_[i] = is_all || (!is_named && is(i, Role::picture_term));
    }
  }
}

// "a heart AND a star", "NO stars", "a RED heart", but not "a sign: NO SMOKING", where no word
// between the others is known.
bool Phrases::is_emphasis(size_t first, size_t end) const {
  size_t before = first;
  while (before > 0 && (is(before - 1, Role::article) || is(before - 1, "is"))) --before;
  if (before > 0 && names_text(before - 1)) return false;
  const auto is_small = [&](size_t at) {
    return is(at, Role::connector) || is(at, Role::negation) || is(at, Role::article) ||
           is(at, Role::function) || is_any(at, {"or", "nor"});
  };
  bool has_noun = false, only_colours = true;
  for (size_t i = first; i < end;) {
    const Phrase phrase = phrase_at(i);
    const bool is_known = phrase.meaning != nullptr || is_small(i) || number_of(tokens_[i].lower) ||
                          size_of(tokens_[i].lower);
    if (!is_known) return false;
    has_noun |= phrase.meaning != nullptr;
    only_colours &= phrase.is(Meaning::Kind::colour) || is(i, Role::connector);
    i += std::max<size_t>(phrase.tokens, 1);
  }
  // "a button: NO"
  if (!has_noun) return is_word(end) && !is(end, Role::preposition);
  if (is(first, Role::negation) || is(first, Role::connector)) return true;
  if (first == 0) return leads_to_noun(end) && phrase_at(end - 1).is(Meaning::Kind::colour);
  // "a heart in RED", "make it RED"
  if (only_colours && is_any(first - 1, {"in", "on", "is", "are", "be", "it", "them", "painted",
                                         "coloured", "colored", "all", "both"})) {
    return true;
  }
  const std::string& last = tokens_[first - 1].lower;
  return is(first - 1, Role::article) || number_of(last) || size_of(last) ||
         phrase_at(first - 1).is(Meaning::Kind::colour) ||
         (phrase_at(end - 1).is(Meaning::Kind::colour) && leads_to_noun(end));
}

const Meaning* Phrases::thing_named(const std::string& word) const {
  const Meaning* const found = words_.find(word);
  return found != nullptr && found->kind == Meaning::Kind::thing ? found : nullptr;
}

bool Phrases::is_any(size_t at, std::initializer_list<std::string_view> words) const {
  return std::ranges::any_of(words, [&](std::string_view word) { return is(at, word); });
}

size_t Phrases::starts_with(size_t at, std::string_view phrase) const {
  for (size_t words = 0;; ++words) {
    const size_t end = phrase.find(' ');
    if (!is(at + words, phrase.substr(0, end))) return 0;
    if (end == phrase.npos) return words + 1;
    phrase.remove_prefix(end + 1);
  }
}

bool Phrases::is_text(size_t at) const {
  return at < size() && (tokens_[at].kind == Token::Kind::quote || is_capitals(at) ||
                         (tokens_[at].text.ends_with('%') && is_beside_capitals(at)));
}

bool Phrases::is_capitals(size_t at) const {
  return at < size() && capitals_are_text_ && is_shouted(tokens_[at]) && !emphasised_[at];
}

// "SALE! 50%", "50% OFF"
bool Phrases::is_beside_capitals(size_t at) const {
  if (is_capitals(at + 1)) return true;
  const bool has_mark =
      at > 0 && is_mark(at - 1) && (tokens_[at - 1].text == "!" || tokens_[at - 1].text == "?");
  size_t before = at;
  while (has_mark && before > 0 && is_mark(before - 1)) --before;
  return before > 0 && is_capitals(before - 1);
}

bool Phrases::names_text(size_t at) const {
  // "a man reading a book"
  if (is_any(at, {"reading", "reads", "read"}) && is(at + 1, Role::article)) return false;
  return is(at, Role::names_a_word) || is(at, Role::names_words) || is(at, Role::letters);
}

bool Phrases::is_content(size_t at) const {
  return at < size() && !is_mark(at) && !is(at, Role::function) && !is(at, Role::joint) &&
         !order_of(tokens_[at].lower);
}

Phrase Phrases::phrase_at(size_t at) const {
  Phrase longest;
  std::string phrase;
  for (size_t count = 1; count <= words_.longest_phrase() && is_word(at + count - 1); ++count) {
    phrase += (count == 1 ? "" : " ") + tokens_[at + count - 1].lower;
    if (const Meaning* meaning = words_.find(phrase)) longest = {meaning, count};
  }
  // "a heart plus a star"
  const bool is_sign = at > 0 && (is(at - 1, Role::article) || number_of(tokens_[at - 1].lower));
  if (longest.tokens == 1 && is(at, "plus") && size() > 1 && !is_sign) return {};
  return longest;
}

std::optional<Rgb> Phrases::colour_at(size_t at, size_t& taken) const {
  if (at < size() && tokens_[at].kind == Token::Kind::colour) {
    taken = 1;
    return parse_rgb(tokens_[at].text);
  }
  if (is_text(at)) return std::nullopt;
  const Phrase phrase = phrase_at(at);
  taken = phrase.tokens;
  return phrase.is(Meaning::Kind::colour) ? phrase.meaning->colour : std::nullopt;
}

// "twenty-one", "two dozen", "ten (10)"
Named<size_t> Phrases::joined_count(const std::optional<Named<size_t>>& before,
                                    const Named<size_t>& last) const {
  if (!before) return last;
  const size_t end = before->at.first + before->at.count;
  const Span both{before->at.first, last.at.first + 1 - before->at.first};
  const auto tokens = std::span(tokens_).subspan(end, last.at.first - end);
  constexpr size_t kDozen = 12, kTwenty = 20, kTen = 10, kHundred = 100;
  // "a hundred and one"
  const bool is_rest = before->value >= kHundred && last.value < kHundred;
  if (is_rest && (tokens.empty() || (tokens.size() == 1 && tokens[0].is("and")))) {
    return {before->value + last.value, both};
  }
  if (!tokens.empty()) {
    const bool is_same =
        before->value == last.value && std::ranges::all_of(tokens, [](const Token& each) {
          return each.kind == Token::Kind::mark;
        });
    return is_same ? Named<size_t>{last.value, both} : last;
  }
  if (is_any(last.at.first, {"dozen", "hundred", "thousand"})) {
    return {std::min<size_t>(before->value, kDozen * kTen) * last.value, both};
  }
  if (before->value >= kTwenty && last.value < kTen) return {before->value + last.value, both};
  return last;
}

bool Phrases::describe(size_t at, Description& description) const {
  const std::string_view word = tokens_[at].lower;
  const Span here{at, 1};
  if (const auto size = size_of(word)) {
    description.size = {*size, here};
  } else if (const auto capitals = case_of(word)) {
    description.capitals = {*capitals, here};
  } else if (const auto number = number_of(word)) {
    description.count = joined_count(description.count, {*number, here});
  } else if (is(at, Role::plain_adjective)) {
    description.plain.push_back(here);
  } else {
    return false;
  }
  return true;
}

Description Phrases::description_at(size_t& at) const {
  Description found;
  for (size_t taken = 0; at < size() && !is_text(at); at += taken) {
    if (const auto colour = colour_at(at, taken)) {
      found.colours.push_back({*colour, {at, taken}});
    } else if (const Phrase phrase = phrase_at(at); phrase.is(Meaning::Kind::font)) {
      taken = phrase.tokens;
      found.font = {phrase.meaning->index, {at, taken}};
    } else if (is(at, Role::article) && !found.colours.empty()) {
      break;  // something new begins: "on yellow: a red heart"
    } else if (is(at, Role::article) || (!number_of(tokens_[at].lower) && describe(at, found))) {
      taken = 1;
    } else if (!found.colours.empty() && joins_colours(at)) {
      taken = is(at + 1, "and") ? 2 : 1;
    } else {
      break;
    }
  }
  return found;
}

// "red, green and blue", "from red to blue"
bool Phrases::joins_colours(size_t at) const {
  const bool is_comma = is_mark(at) && tokens_[at].text == ",";
  if (!is_comma && !is(at, "and") && !is(at, "to")) return false;
  size_t taken = 0;
  return colour_at(at + (is_comma && is(at + 1, "and") ? 2 : 1), taken).has_value();
}

bool Phrases::names_element(size_t at) const {
  return is_text(at) || phrase_at(at).is(Meaning::Kind::thing) || is(at, Role::names_a_word);
}

bool Phrases::leads_to_noun(size_t at) const {
  constexpr size_t kMostAdjectives = 5;
  for (size_t end = at + kMostAdjectives; at < end; ++at) {
    if (names_element(at) || phrase_at(at).is(Meaning::Kind::background)) return true;
    if (!is_content(at) || is(at, Role::negation)) return false;
  }
  return false;
}

size_t Phrases::with_joint(size_t at) const {
  size_t first = at;
  while (first > 0 && is(first - 1, Role::article)) --first;
  return first > 0 && is(first - 1, Role::joint) ? first - 1 : at;
}

}  // namespace octet::demo
