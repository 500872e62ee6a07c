#include "demo/negations.h"

#include <algorithm>
#include <utility>

namespace octet::demo {
namespace {

// Of several words.
constexpr std::string_view kPhrases[] = {
    "instead of", "in place of", "rather than",    "other than",  "free of",
    "get rid of", "leave out",   "take out",       "apart from",  "aside from",
    "save for",   "hold the",    "stay away from", "no need for", "with the exception of",
    "ditch the",  "lose the"};

class NegationReader {
 public:
  NegationReader(const Phrases& phrases, size_t at, bool behind_noun)
      : phrases_(phrases), at_(at), behind_noun_(behind_noun) {}

  NegationsRead read() {
    const size_t begin = at_;
    if (read_adjective() || read_not_only() || read_free()) return end_at(at_);
    at_ = after_trigger(at_);
    if (at_ == begin) return {};
    result_.is_exchange = phrases_.is_any(begin, {"instead", "rather", "not"});
    result_.is_of_noun = result_.is_exchange || phrases_.is_any(begin, {"other", "but", "never"}) ||
                         is_contracted(begin);
    is_neither_ = phrases_.is(begin, "neither") && !phrases_.is(at_, Role::article);
    if (is_colour_in()) ++at_;
    // "nothing but a moon", "nothing else": true of all pictures here.
    if (phrases_.is(begin, "nothing") && phrases_.is_any(at_, {"but", "else", "except", "more"})) {
      result_.negations.push_back({.said = {begin, 2}});
      return end_at(at_ + 1);
    }
    if (is_about_place()) return end_at(end_of_clause());
    for (size_t from = first_of(begin), trigger = begin; read_one(from, trigger);) {
      from = trigger = at_;
      const size_t next = further_one();
      if (next == at_) break;
      at_ = next;
    }
    if (result_.negations.empty()) return {};
    return end_at(at_);
  }

 private:
  NegationsRead end_at(size_t end) {
    result_.end = end;
    result_.only_colours = std::ranges::all_of(result_.negations, [](const Negation& each) {
      return !each.thing && !each.colours.empty();
    });
    result_.only_colours |= keeps_thread_;
    const auto& all = result_.negations;
    result_.is_alternative = is_neither_ && all.size() > 1 && all.back().thing &&
                             !all.back().colours.empty() && !all.front().thing &&
                             !all.front().colours.empty();
    return std::move(result_);
  }

  // "a non-red heart" and "a not too big heart" are hearts.
  bool read_adjective() {
    const bool is_adverb = at_ > 0 && phrases_.is_any(at_ - 1, {"a", "an", "the"});
    if (!phrases_.is_any(at_, {"non", "un"}) && !(phrases_.is(at_, "not") && is_adverb))
      return false;
    size_t end = at_ + 1, taken = 0;
    while (phrases_.is_any(end, {"too", "very", "so"})) ++end;
    Negation one;
    if (const auto colour = phrases_.colour_at(end, taken)) {
      one.colours = {*colour};
    } else if (phrases_.is_word(end) && size_of(phrases_[end].lower)) {
      taken = 1;  // what nobody else says is of the usual size
    } else {
      return false;
    }
    end += taken;
    one.said = {at_, end - at_};
    result_.negations.push_back(std::move(one));
    result_.is_of_next = true;
    at_ = end;
    return true;
  }

  // "a cloud-free sky", "a starless night"
  bool read_free() {
    if (!phrases_.is_word(at_) || phrases_.is_text(at_)) return false;
    constexpr std::string_view kLess = "less";
    const std::string& word = phrases_[at_].lower;
    const Phrase phrase = phrases_.phrase_at(at_);
    const size_t noun = std::max<size_t>(phrase.tokens, 1);
    const size_t free = at_ + noun;
    Negation one;
    if (phrases_.is(free, "free") && !phrases_.is(free + 1, "of") &&
        (phrases_[free].joined || phrase.is(Meaning::Kind::thing))) {
      one.said = {at_, noun + 1};
      if (phrase.is(Meaning::Kind::thing)) one.thing = phrase.meaning->index;
      if (phrase.is(Meaning::Kind::colour)) one.colours = {*phrase.meaning->colour};
      result_.is_of_next = !one.colours.empty();
    } else if (word.ends_with(kLess)) {
      const Meaning* const thing = phrases_.thing_named(word.substr(0, word.size() - kLess.size()));
      if (thing == nullptr) return false;
      one.said = {at_, 1};
      one.thing = thing->index;
    } else {
      return false;
    }
    at_ += one.said.count;
    result_.negations.push_back(std::move(one));
    keeps_thread_ = true;
    return true;
  }

  // "not only a star but also a heart" negates nothing.
  bool read_not_only() {
    if (!phrases_.is(at_, "not") || !phrases_.is_any(at_ + 1, {"only", "just"})) return false;
    size_t but = at_;
    while (but < phrases_.size() && !phrases_.is(but, "but")) ++but;
    if (but == phrases_.size()) return false;
    result_.negations.push_back({.said = {at_, 2}});
    at_ += 2;
    return true;
  }

  size_t after_trigger(size_t at) const {
    if (is_exception(at)) return at + 1;
    for (const std::string_view phrase : kPhrases) {
      if (const size_t words = phrases_.starts_with(at, phrase)) return at + words;
    }
    // "five minus two"
    if (phrases_.is(at, "minus") && phrases_.is_word(at + 1) && number_of(phrases_[at + 1].lower)) {
      return at;
    }
    // "no more than two"; "hearts, no wait, stars" takes back what it cannot take back here.
    const bool is_limit =
        phrases_.is_any(at + 1, {"only", "just", "more", "less", "fewer", "wait", "sorry"});
    // "a not quite round heart" is a heart.
    const bool is_adverb = at > 0 && phrases_.is_any(at - 1, {"a", "an", "the"});
    if (!phrases_.is(at, Role::negation) || phrases_.is_text(at) || is_adverb) return at;
    return is_limit && phrases_.is_any(at, {"no", "not"}) ? at : at + 1;
  }

  // "any heart but a red one", "in any colour but red"; not "any heart but in red".
  bool is_exception(size_t at) const {
    if (!phrases_.is(at, "but") || at == 0) return false;
    if (phrases_.is_any(at - 1, {"anything", "everything"})) return true;
    size_t next = at + 1, taken = 0;
    while (phrases_.is(next, Role::article)) ++next;
    if (!phrases_.colour_at(next, taken) && !phrases_.phrase_at(next).is(Meaning::Kind::thing)) {
      return false;
    }
    constexpr size_t kLongest = 6;
    for (size_t before = at; before-- > 0 && at - before <= kLongest;) {
      if (!phrases_.is_word(before) || phrases_.is(before, Role::connector)) return false;
      if (phrases_.is_any(before, {"any", "every", "each", "all"})) return true;
    }
    return false;
  }

  // "in any colour but red": all of it is one exception.
  size_t first_of(size_t begin) const {
    size_t first = begin;
    while (first > 0 && phrases_.is_any(first - 1, {"colour", "color", "colours", "colors", "shade",
                                                    "shades", "tone", "hue"})) {
      --first;
    }
    const bool is_any_colour =
        first < begin && first > 0 && phrases_.is_any(first - 1, {"any", "every", "all", "each"});
    if (!is_any_colour) return begin;
    return first > 1 && phrases_.is(first - 2, "in") ? first - 2 : first - 1;
  }

  bool is_contracted(size_t at) const {
    return phrases_.is_word(at) && phrases_[at].lower.ends_with("n't");
  }

  // "not in red"
  bool is_colour_in() const {
    size_t at = at_ + 1, taken = 0;
    while (phrases_.is(at, Role::article)) ++at;
    return phrases_.is(at_, "in") && phrases_.colour_at(at, taken) &&
           !phrases_.phrase_at(at + taken).is(Meaning::Kind::background);
  }

  // "not on the left"
  bool is_about_place() const {
    if (!phrases_.is_word(at_)) return false;
    return phrases_.is(at_, Role::joint) || order_of(phrases_[at_].lower).has_value() ||
           phrases_.is_any(at_, {"left", "right", "top", "bottom", "next"});
  }

  size_t end_of_clause() const {
    size_t at = at_;
    while (at < phrases_.size() && !phrases_.is_mark(at) && !phrases_.is(at, Role::connector)) ++at;
    return at;
  }

  // "any big red stars", from `from` on: the word that negates it, at `trigger`, is part of it.
  bool read_one(size_t from, size_t trigger) {
    Negation one;
    const size_t start = at_;
    size_t end = at_;
    const auto take = [&](size_t tokens) { end = at_ += tokens; };
    bool has_noun = false;
    const bool is_bare = phrases_.is(trigger, "not") || is_contracted(trigger);
    while (at_ < phrases_.size() && !has_noun) {
      size_t taken = 0;
      const Phrase phrase = phrases_.phrase_at(at_);
      if (phrases_.is_text(at_)) {
        one.words.push_back(phrases_[at_].text);
        take(1);
        has_noun = !phrases_.is_text(at_);
      } else if (const auto colour = phrases_.colour_at(at_, taken)) {
        one.colours.push_back(*colour);
        take(taken);
      } else if (phrase.is(Meaning::Kind::thing)) {
        one.thing = phrase.meaning->index;
        take(phrase.tokens);
        has_noun = true;
      } else if (phrases_.is(at_, Role::letters) || phrases_.is(at_, Role::names_a_word)) {
        one.letters = !phrases_.is_text(at_ + 1);
        take(1);
        has_noun = one.letters;
      } else if (phrases_.is_any(at_, {"background", "colour", "color", "colours", "colors"})) {
        one.always_there = true;
        take(1);
        has_noun = true;
      } else if (is_colour_in()) {
        take(1);
      } else if (phrases_.is_content(at_) && !phrases_.is(at_, Role::negation) &&
                 !phrases_.is_any(at_, {"or", "instead", "rather"})) {
        // "not two hearts" may be three.
        if (is_bare && phrases_.is_word(at_)) one.count = number_of(phrases_[at_].lower);
        take(1);  // unknown: it will not be there
      } else if (phrases_.is(at_, Role::function) && !phrases_.is(at_, Role::connector) &&
                 !(end > start && phrases_.is(at_, Role::article))) {
        ++at_;
      } else {
        break;
      }
    }
    // "no hearts in red"
    if (one.thing && is_colour_in()) {
      const Description found = phrases_.description_at(++at_);
      for (const Named<Rgb>& colour : found.colours) one.colours.push_back(colour.value);
      end = at_;
    }
    // "not smiling" may be wrong of what is painted, which "no cats" and "not a cat" are not.
    const bool is_known =
        one.thing || one.letters || one.count || !one.colours.empty() || !one.words.empty();
    if (is_bare && !is_known && !phrases_.is(from + 1, Role::function)) one.always_there = true;
    if (behind_noun_ && !is_known) one.always_there = true;
    at_ = end;
    if (end == from || !says_anything(from, end)) return false;
    one.said = {from, end - from};
    result_.negations.push_back(std::move(one));
    return true;
  }

  bool says_anything(size_t from, size_t end) const {
    for (size_t at = from; at < end; ++at) {
      if (phrases_.is_content(at) && !phrases_.is(at, Role::negation) && !phrases_.is(at, "or")) {
        return true;
      }
    }
    return false;
  }

  // "or clouds", "and moons"; "and a moon" is wanted. After a comma only as part of such a list.
  size_t further_one() const {
    if (phrases_.is_any(at_, {"or", "nor"})) return at_ + 1;
    if (phrases_.is(at_, "and")) return is_plural(at_ + 1) ? at_ + 1 : at_;
    if (!phrases_.is_mark(at_) || phrases_[at_].text != ",") return at_;
    if (phrases_.is_any(at_ + 1, {"or", "nor"})) return at_ + 2;
    constexpr size_t kLongestList = 12;
    for (size_t at = at_ + 1; at < at_ + kLongestList && at < phrases_.size(); ++at) {
      if (phrases_.is_any(at, {"or", "nor"})) return at_ + 1;
      const bool goes_on =
          phrases_.is_mark(at) ? phrases_[at].text == "," : phrases_.is_content(at);
      if (!goes_on || phrases_.is(at, Role::negation)) return at_;
    }
    return at_;
  }

  bool is_plural(size_t at) const {
    const Phrase phrase = phrases_.phrase_at(at);
    return phrase.is(Meaning::Kind::thing) && phrase.meaning->plural;
  }

  const Phrases& phrases_;
  size_t at_;
  const bool behind_noun_;
  bool is_neither_ = false;    // and no article behind it
  bool keeps_thread_ = false;  // what it says is of the noun that follows
  NegationsRead result_;
};

}  // namespace

NegationsRead negations_at(const Phrases& phrases, size_t at, bool behind_noun) {
  return NegationReader(phrases, at, behind_noun).read();
}

}  // namespace octet::demo
