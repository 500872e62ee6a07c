// What is said of things behind their names: "a heart, red", "the heart is red", "make it green".
#include <algorithm>
#include <span>
#include <utility>

#include "demo/scene_reader.h"

namespace octet::demo {

bool SceneReader::read_behind_noun() {
  if (current_ == kNone || at_ != noun_end_ || at_ >= phrases_.size()) return false;
  Group& group = scene_.groups[current_];
  const bool has_bracket = phrases_.is_mark(at_) && phrases_[at_].text == "(";
  const bool has_comma = phrases_.is_mark(at_) && phrases_[at_].text == ",";
  size_t at = at_ + (has_bracket || has_comma ? 1 : 0);
  const auto ends = [&](size_t end) {
    if (has_bracket) return phrases_.is_mark(end);
    // "a heart, red text", "a heart, red is forbidden"
    if (has_comma && (phrases_.names_text(end) || is(end, Role::typeface) || is(end, "is"))) {
      return false;
    }
    return ends_description(end);
  };
  const auto number = phrases_.is_word(at) ? number_of(phrases_[at].lower) : std::nullopt;
  if (number && !has_comma && group.thing && group.said.count.count == 0 && ends(at + 1)) {
    group.count = group.wanted = *number;
    group.said.count = {at, 1};
    at_ = at + 1;
    return true;
  }
  const Description found = phrases_.description_at(at);
  if (found.colours.empty() || !group.said.colours.empty() || !ends(at)) return false;
  if (!share_colours(found)) take_description(group, found);
  at_ = at;
  return true;
}

SceneReader::Statement SceneReader::statement_at(size_t at) const {
  Statement said;
  const auto is_several = [&] {
    return is_any(at, {"both", "all", "each", "everything", "they", "they're"}) ||
           (said.end > 0 && is(at, "them"));
  };
  const auto is_of_one = [&] {
    return is_any(at, {"it", "it's", "is", "are", "be", "should", "must", "will", "shall", "make",
                       "paint", "draw", "colour", "color", "in", "painted", "drawn", "coloured",
                       "colored"}) ||
           (said.end == 0 && is(at, "but")) ||
           (said.end > 0 && is_any(at, {"of", "to", "which"})) ||
           (is_any(at, {"has", "have"}) && (is(at + 1, "to") || ends_in_colour(at + 1))) ||
           (is(at, "to") && is(at + 1, "be")) ||
           (is(at, "let") && is_any(at + 1, {"it", "them"})) ||
           (is(at, "whose") && is_any(at + 1, {"colour", "color"})) ||
           (said.end > 0 && is(at, "the") && is_any(at + 1, {"colour", "color"}));
  };
  for (; is_several() || is_of_one(); ++at) {
    said.is_of_both |= is(at, "both");
    said.is_of_everything |= is(at, "everything");
    said.is_of_several |= is_several();
    said.end = at + 1;
  }
  return said;
}

bool SceneReader::ends_in_colour(size_t at) const {
  return !phrases_.description_at(at).colours.empty() && is_any(at, {"colour", "color"});
}

size_t SceneReader::list_begin() const {
  const std::vector<Group>& groups = scene_.groups;
  size_t first = groups.size();
  if (current_ + 1 != first || at_ != noun_end_) return first;
  while (first > 0 && groups[first - 1].said.colours.empty()) {
    if (--first == 0) break;
    const Group& before = groups[first - 1];
    const Span last = before.thing ? before.said.noun.front() : Span{before.said.words.back(), 1};
    const size_t next = last.first + last.count;
    const bool is_further = first + 1 < groups.size() && phrases_.is_mark(next) &&
                            phrases_[next].text == ",";  // "a moon, a heart and a star"
    if (!is(next, "and") && !is_further) break;
  }
  return first;
}

bool SceneReader::read_statement() {
  Statement said = statement_at(at_);
  // "in blue: a heart"
  said.is_of_several |= said.end > 0 && scene_.groups.empty() && unknown_ == kNone;
  const size_t first_of_list =
      is_any(at_, {"are", "should", "must", "will", "shall"}) ? list_begin() : scene_.groups.size();
  const bool is_of_list = first_of_list + 1 < scene_.groups.size();
  said.is_of_several |= is_of_list;
  if (said.end == 0 || (current_ == kNone && !said.is_of_several)) return false;
  size_t at = said.end;
  const Description found = phrases_.description_at(at);
  if (found.empty() || !ends_description(at)) return false;
  const Span verbs{at_, said.end - at_};
  if (said.is_of_several) {
    // "in red letters: HELLO" is about the letters alone.
    const bool is_of_letters = phrases_.names_text(at) || is(at, Role::typeface);
    const bool is_colour = found.colours.size() == 1 && !found.size && !found.font &&
                           !found.capitals && !is_of_letters;
    if (!is_colour) return false;
    const size_t count = scene_.groups.size();
    SharedColour shared{.colour = found.colours[0], .verbs = verbs};
    if (said.is_of_both && count > 0)
      shared.first =
          scene_.groups.back().wanted == 2 ? count - 1 : count - std::min<size_t>(count, 2);
    if (is_of_list) shared.first = first_of_list;
    if (!said.is_of_everything && count > 0) shared.end = count;
    shared_.push_back(shared);
    at_ = at;
    return true;
  }
  if (is_part_meant_ && is_any(at_, {"is", "are"})) {
    at_ = at;
    return true;
  }
  Group& group = scene_.groups[current_];
  group.said.noun.push_back(verbs);
  if (!share_colours(found)) take_description(group, found);
  for (; is(at, Role::letters) || is(at, Role::typeface); ++at) {
    const bool is_colour = !found.colours.empty() && is_any(at, {"colour", "color"});
    if (!group.thing || is_colour) group.said.noun.push_back({at, 1});
  }
  at_ = at;
  return true;
}

// Where something has a colour of its own already, the words for all are not wholly true, and
// nobody claims them.
void SceneReader::share_statements() {
  for (const SharedColour& shared : shared_) {
    const size_t end = std::min(shared.end, scene_.groups.size());
    const size_t first = std::min(shared.first, end);
    const auto groups = std::span(scene_.groups).subspan(first, end - first);
    const bool is_of_all = std::ranges::all_of(groups, [&](const Group& group) {
      return group.said.colours.empty() || group.colours == std::vector{shared.colour.value};
    });
    for (Group& group : groups) {
      if (!group.said.colours.empty()) continue;
      group.colours = {shared.colour.value};
      group.said.colours = {is_of_all ? shared.colour.at : Span{}};
      if (is_of_all) group.said.noun.push_back(shared.verbs);
    }
  }
}

bool SceneReader::read_possessive() {
  constexpr std::string_view kOf = "'s";
  if (!phrases_.is_word(at_) || !is_any(at_ + 1, {"colour", "color"})) return false;
  const std::string& word = phrases_[at_].lower;
  if (!word.ends_with(kOf)) return false;
  const Meaning* const thing = phrases_.thing_named(word.substr(0, word.size() - kOf.size()));
  if (thing == nullptr) return false;
  const Span said{at_, 2};
  at_ += 2;
  add_thing(*thing, said);
  return true;
}

bool SceneReader::read_denied_colour() {
  if (!is(at_, Role::negation) || !is_any(at_ + 1, {"make", "paint", "draw", "colour", "color"})) {
    return false;
  }
  size_t at = at_ + 2;
  while (is(at, Role::article)) ++at;
  const Phrase noun = phrases_.phrase_at(at);
  const size_t behind = at + noun.tokens;
  size_t end = is(behind, "in") ? behind + 1 : behind;
  const Description found = phrases_.description_at(end);
  if (!noun.is(Meaning::Kind::thing) || found.colours.empty() || !ends_description(end)) {
    return false;
  }
  const size_t first = at_;
  at_ = behind;
  add_thing(*noun.meaning, {at, noun.tokens});
  Negation negation{.said = {first, at - first}, .group = current_};
  for (const Named<Rgb>& colour : found.colours) negation.colours.push_back(colour.value);
  scene_.negations.push_back(negation);
  negation.said = {behind, end - behind};
  scene_.negations.push_back(std::move(negation));
  at_ = end;
  return true;
}

bool SceneReader::read_forbidden_colour() {
  if (described_.colours.empty() || described_.count) return false;
  const Span& last = described_.colours.back().at;
  const size_t end = last.first + last.count == at_ ? unwanted_end(at_) : 0;
  if (end == 0) return false;
  Negation negation{.said = {described_.colours.front().at.first, 0}};
  negation.said.count = end - negation.said.first;
  for (const Named<Rgb>& colour : described_.colours) negation.colours.push_back(colour.value);
  scene_.negations.push_back(std::move(negation));
  described_.colours.clear();
  at_ = end;
  return true;
}

bool SceneReader::read_other_count() {
  const bool is_exchange = is(at_, "but") && phrases_.is_word(at_ + 1) && !scene_.negations.empty();
  if (!is_exchange || !scene_.negations.back().count || !scene_.negations.back().thing) {
    return false;
  }
  const auto number = number_of(phrases_[at_ + 1].lower);
  if (!number || !ends_description(at_ + 2)) return false;
  Group group;
  group.thing = scene_.negations.back().thing;
  group.count = group.wanted = *number;
  group.said.noun = {{at_ + 1, 1}};
  group.said.count = {at_ + 1, 1};
  at_ += 2;
  add(std::move(group));
  return true;
}

}  // namespace octet::demo
