// Nouns that are known and name nothing to paint: "heart-shaped", "like a heart"; and things that a
// text names and does not want after all.
#include <algorithm>
#include <utility>

#include "demo/scene_reader.h"

namespace octet::demo {

bool SceneReader::pass_attribute() {
  const Phrase phrase = phrases_.phrase_at(at_);
  const bool is_thing = phrase.is(Meaning::Kind::thing);
  Description ignored;
  const bool describes = phrase.is(Meaning::Kind::colour) ||
                         (phrases_.is_word(at_) && phrases_.describe(at_, ignored));
  const size_t last = at_ + std::max<size_t>(phrase.tokens, 1);
  if (!(is_thing || describes) || !phrases_.is_word(last) || phrases_.is_text(last)) return false;
  const std::string& word = phrases_[last].lower;
  const auto ends = [&](std::initializer_list<std::string_view> all) {
    return std::ranges::any_of(all, [&](std::string_view end) { return word.ends_with(end); });
  };
  const bool says_more = phrases_.phrase_at(last).meaning || phrases_.describe(last, ignored);
  if (says_more) return false;
  // Star-shaped cookies are no stars, and sun-dried tomatoes no sun.
  const bool is_shape_alone = ends({"shaped", "like"}) && is_any_thing(last + 1);
  const bool is_noun_of_it = is_thing && phrases_[last].joined && !is_shape_alone &&
                             phrases_.is_content(last + 1) && phrases_.is_word(last + 1);
  if (!is_noun_of_it && !phrases_.leads_to_noun(last + 1)) return false;
  if (describes) {
    // "a red-roofed house" is not red, "a red-coloured house" is.
    if (!phrases_[last].joined || ends({"coloured", "colored", "tinted", "sized", "ish", "and"})) {
      return false;
    }
  } else if (!(phrases_[last].joined ? ends({"ed", "ing", "like", "lit", "ish", "style"})
                                     : word == "shaped")) {
    return false;
  }
  at_ = last + 1;
  return true;
}

bool SceneReader::is_any_thing(size_t at) const {
  return is_any(at, {"something", "anything", "thing", "object", "shape", "icon", "symbol",
                     "figure", "form"});
}

bool SceneReader::pass_comparison() {
  // "eyes like stars" and "a cake in the shape of a star" are about eyes and cake; "something like
  // a star" and "it looks like a star" about stars.
  size_t head = is_any(at_, {"shape", "form"}) ? phrases_.with_joint(at_) : at_;
  while (head > 0 && is_any(head - 1, {"looks", "looking", "that", "which", "shaped"})) --head;
  const bool is_of_unknown = current_ == kNone && head > 0 && phrases_.is_content(head - 1) &&
                             phrases_.phrase_at(head - 1).meaning == nullptr &&
                             !is_any_thing(head - 1);
  if (at_ == 0 || (current_ == kNone && !is_of_unknown)) return false;
  size_t begin = at_;
  const bool is_several =
      current_ != kNone && scene_.groups[current_].wanted > 2 && at_ == noun_end_;
  if (is_several && is(at_, "in") && is(at_ + 1, "a") &&
      phrases_.phrase_at(at_ + 2).is(Meaning::Kind::thing)) {
    ++begin;  // "five stars in a circle"
  } else if (is(at_, "like")) {
    if (is_any(at_ - 1, {"would", "i'd", "i", "you", "we", "also", "really"})) return false;
    ++begin;
  } else if (is_any(at_, {"shape", "form", "colour", "color", "colours", "colors", "shade", "size",
                          "style", "likeness", "look"}) &&
             is(at_ + 1, "of")) {
    begin += 2;
  } else if (is_any(at_, {"resembling", "resembles"})) {
    ++begin;
  } else if (phrases_.starts_with(at_, "similar to")) {
    begin += 2;
  } else if (is(at_, "as")) {
    constexpr size_t kLongest = 4;  // "as bright red as"
    size_t second = at_ + 1;
    while (second < at_ + kLongest && phrases_.is_word(second) && !is(second, "as")) ++second;
    if (!is(second, "as")) return false;
    begin = second + 1;
  } else {
    return false;
  }
  constexpr size_t kLongest = 6;
  for (size_t at = begin; at < begin + kLongest && phrases_.is_word(at); ++at) {
    const Phrase noun = phrases_.phrase_at(at);
    if (phrases_.is_text(at) || is(at, Role::connector) || is(at, Role::negation)) return false;
    if (!noun.is(Meaning::Kind::thing)) continue;
    const Span said{at, noun.tokens};
    const bool is_of_colour = is(at_ + 1, "of") && !is(at_, "like");
    if (is_of_colour && is_any(at + noun.tokens, {"is", "should", "must", "will"})) return false;
    at_ = at + noun.tokens;
    // "as red as the heart", which is there
    const auto same = std::ranges::find_if(
        scene_.groups, [&](const Group& group) { return group.thing == noun.meaning->index; });
    if (is(at - 1, "the") && same != scene_.groups.end()) same->said.noun.push_back(said);
    return true;
  }
  return false;
}

bool SceneReader::pass_pattern(const Phrase& phrase) {
  if (is_any(at_, {"dot", "dots"}) && at_ > 0 && is(at_ - 1, "polka")) {
    unknown_ = at_++;
    return true;
  }
  if (current_ == kNone || !scene_.groups[current_].thing || described_.count) return false;
  if (!is_any(at_, {"dots", "stripes"})) return false;
  size_t first = at_;
  for (const Named<Rgb>& colour : described_.colours) first = std::min(first, colour.at.first);
  if (first != noun_end_ + 1 || !is_any(noun_end_, {"with", "has", "have", "having", "in"})) {
    return false;
  }
  described_ = {};
  at_ += phrase.tokens;
  return true;
}

size_t SceneReader::unwanted_end(size_t at) const {
  bool is_negated = false;
  const auto is_verb = [&] {
    return is_any(at, {"is", "are", "was", "were", "be", "should", "must", "to", "can", "will"});
  };
  const auto is_not = [&] {
    return is_any(at, {"not", "never", "no", "longer"}) ||
           (phrases_.is_word(at) && phrases_[at].lower.ends_with("n't"));
  };
  const size_t begin = at;
  for (; is_verb() || is_not(); ++at) is_negated |= is_not() && !is(at, "longer");
  if (at == begin) return 0;
  // "is not what I want"
  if (is_negated && is(at, "what") && is_any(at + 1, {"i", "we"}) &&
      is_any(at + 2, {"want", "wanted", "need", "meant", "like"})) {
    return at + 3;
  }
  const bool is_unwanted =
      is_negated ? is_any(at, {"wanted", "allowed", "needed", "welcome", "included", "required",
                               "there", "shown", "visible", "present", "painted", "drawn",
                               "necessary", "permitted", "appear"})
                 : is_any(at, {"missing", "absent", "gone", "forbidden", "unwanted", "excluded",
                               "omitted", "banned", "removed", "prohibited"});
  return is_unwanted ? at + 1 : 0;
}

bool SceneReader::read_withdrawal() {
  if (current_ == kNone || current_ + 1 != scene_.groups.size() || at_ != noun_end_) return false;
  const size_t end = unwanted_end(at_);
  if (end == 0) return false;
  const Group group = std::move(scene_.groups.back());
  scene_.groups.pop_back();
  size_t first = end;
  for (const Span& span : group.said.noun) first = std::min(first, span.first);
  for (const Span& span : group.said.colours) first = std::min(first, span.first);
  if (group.said.count.count > 0) first = std::min(first, group.said.count.first);
  for (const size_t word : group.said.words) first = std::min(first, word);
  named_thing_ = group.thing;
  scene_.negations.push_back({.said = {first, end - first},
                              .thing = group.thing,
                              .colours = group.colours,
                              .words = group.words});
  at_ = end;
  lose_thread();
  return true;
}

}  // namespace octet::demo
