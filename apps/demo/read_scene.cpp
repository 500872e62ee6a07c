#include <algorithm>
#include <utility>

#include "demo/scene_reader.h"

namespace octet::demo {
namespace {

// Takes from the largest group, so that "ten stars and a moon" keep the moon.
void keep_most_elements(Scene& scene) {
  const auto fewer = [](const Group& a, const Group& b) { return a.elements() < b.elements(); };
  // So many groups fit with one element each.
  if (scene.groups.size() > kMostElements) {
    const auto end = scene.groups.begin() + kMostElements;
    scene.dropped.assign(end, scene.groups.end());
    scene.groups.erase(end, scene.groups.end());
  }
  for (Group& group : scene.groups) group.count = std::min(group.count, kMostElements);
  for (;;) {
    size_t total = 0;
    for (const Group& group : scene.groups) total += group.elements();
    if (total <= kMostElements) return;
    Group& largest = *std::max_element(scene.groups.begin(), scene.groups.end(), fewer);
    if (largest.thing) --largest.count;
    if (!largest.thing) largest.words.pop_back();
  }
}

}  // namespace

Scene SceneReader::read() {
  while (at_ < phrases_.size()) step();
  end_clause();
  share_statements();
  return std::move(scene_);
}

void SceneReader::step() {
  if (read_shares() || read_behind_noun() || read_withdrawal() || read_forbidden_colour()) {
    return;
  } else if (phrases_.is_mark(at_)) {
    end_clause();
    // "3; stars", but "ten (10) stars"
    if (phrases_[at_].text != "(" && phrases_[at_].text != ")") described_.count.reset();
    // "the top half blue, a sun"
    const bool is_of_place = place_.said_row.count + place_.said_column.count > 0;
    if (is_of_place && !described_.colours.empty()) place_ = {};
    const bool goes_on =
        phrases_[at_].text == "," || phrases_[at_].text == "(" || phrases_[at_].text == ")";
    if (is_of_place || !goes_on) described_.colours.clear();
    ++at_;
  } else if (phrases_.is_text(at_)) {
    read_text();
  } else if (read_denied_colour() || read_negations() || read_other_count()) {
    return;
  } else if (phrases_.names_text(at_)) {
    read_named_text();
  } else if (pass_comparison() || pass_attribute() || read_shared_noun() || read_one_more() ||
             read_possessive()) {
    return;
  } else if (!read_phrase() && !read_background() && !read_statement() && !read_place()) {
    read_small_word();
  }
}

bool SceneReader::read_negations() {
  const size_t end = is(at_, "no") && at_ > 0 && is(at_ - 1, "with") ? at_ - 1 : at_;
  NegationsRead found = negations_at(phrases_, at_, current_ != kNone && end == noun_end_);
  if (found.end == 0) return false;
  at_ = found.end;
  if (shares_noun(found)) {
    Group group;
    group.thing = found.negations.back().thing;
    group.said.noun = {found.negations.back().said};
    for (Negation& each : found.negations) {
      each.group = scene_.groups.size();
      scene_.negations.push_back(std::move(each));
    }
    add(std::move(group));
    return true;
  }
  const bool is_of_next = found.is_of_next || !described_.colours.empty();
  for (Negation& each : found.negations) {
    const bool is_of_one = found.is_of_noun || found.is_of_next;
    if (found.only_colours && is_of_one && (is_of_next || current_ != kNone)) {
      each.group = is_of_next ? scene_.groups.size() : current_;
    }
    if (each.thing && (!each.colours.empty() || scene_.groups.empty())) named_thing_ = each.thing;
    scene_.negations.push_back(std::move(each));
  }
  if (!found.only_colours) lose_thread();
  return true;
}

bool SceneReader::shares_noun(const NegationsRead& found) const {
  if (found.is_alternative) return true;
  if (!found.is_exchange || found.negations.size() != 1 || described_.colours.empty()) return false;
  const Negation& negated = found.negations.front();
  const Span& wanted = described_.colours.back().at;
  const size_t end = wanted.first + wanted.count;
  const bool follows =
      end == negated.said.first || (end + 1 == negated.said.first && phrases_.is_mark(end));
  return follows && negated.thing && !negated.colours.empty();
}

void SceneReader::read_text() {
  Group group;
  // "the words GOOD and BAD in red": all of them
  const bool is_several = !heralds_.empty() && is_any(heralds_.back().first, {"words", "letters"});
  for (;;) {
    for (; phrases_.is_text(at_) || is_letter_in_text(at_); ++at_) add_pieces(group, at_);
    size_t next = at_;
    if (phrases_.is_mark(next) && phrases_[next].text == ",") ++next;
    if (is(next, "and")) ++next;
    if (!is_several || next == at_ || !phrases_.is_text(next)) break;
    at_ = next;
  }
  add_words(std::move(group));
}

bool SceneReader::is_letter_in_text(size_t at) const {
  return phrases_.is_any(at, {"a", "i"}) && phrases_[at].text != phrases_[at].lower &&
         is_shouted(phrases_[at - 1]) && phrases_.is_text(at + 1);
}

void SceneReader::add_pieces(Group& group, size_t token) const {
  words_.check_letters(phrases_[token].text);
  for (std::string& piece : words_.pieces_of(phrases_[token].text)) {
    group.words.push_back(std::move(piece));
    group.said.words.push_back(token);
  }
}

void SceneReader::read_named_text() {
  const bool takes_all = is(at_, Role::names_words);
  const bool takes_known = takes_all || is(at_, Role::names_a_word);
  const bool is_denied =
      !takes_known && is(at_ + 1, Role::negation) && has_noun_after(at_ + 2);  // "text: no stars"
  const bool is_letter = is(at_, "letter");
  const bool follows_text = at_ > 0 && phrases_.is_text(at_ - 1) && current_ != kNone;
  heralds_.push_back({at_++, 1});
  while (is_any(at_, {"is", "the"})) ++at_;
  // "the letters should be red"
  const bool is_said = !takes_known && is_any(at_, {"should", "must", "will", "be", "are"});
  Group group;
  while (!is_denied && !is_said && may_be_text(at_) &&
         (group.words.empty() || (takes_all && !ends_text(at_))) &&
         (takes_known || (is_letter ? phrases_[at_].text.size() == 1 : !is_known(at_)))) {
    add_pieces(group, at_++);
  }
  if (!group.words.empty()) {
    add_words(std::move(group));
  } else if (follows_text) {
    append(scene_.groups[current_].said.noun, std::exchange(heralds_, {}));
  } else {
    size_t next = at_;
    while (is(next, Role::function)) ++next;
    if (!phrases_.is_text(next) && !phrases_.names_text(next)) lose_thread();
  }
}

bool SceneReader::may_be_text(size_t at) const {
  return phrases_.is_word(at) && !phrases_.is_text(at) && !phrases_.names_text(at) &&
         !(is(at, Role::preposition) && ends_text(at));
}

bool SceneReader::is_known(size_t at) const {
  return phrases_.phrase_at(at).meaning != nullptr || size_of(phrases_[at].lower) ||
         is(at, Role::article) || is(at, Role::preposition);
}

bool SceneReader::ends_text(size_t at) const {
  if (!is(at, Role::preposition)) return false;
  size_t next = at + 1;
  while (is(next, Role::article) || is(next, Role::preposition)) ++next;
  if (next >= phrases_.size()) return false;
  Description ignored;
  return !phrases_.is_word(next) || phrases_.is_text(next) || phrases_.names_text(next) ||
         phrases_.phrase_at(next).meaning != nullptr || phrases_.describe(next, ignored) ||
         is(next, Role::typeface) || is_place(next) || is(next, "gradient");
}

void SceneReader::append(std::vector<Span>& spans, const std::vector<Span>& more) {
  spans.insert(spans.end(), more.begin(), more.end());
}

void SceneReader::add_words(Group group) {
  if (group.words.empty()) return;
  append(group.said.noun, heralds_);
  add(std::move(group));
}

bool SceneReader::read_phrase() {
  size_t taken = 0;
  if (const auto colour = phrases_.colour_at(at_, taken)) {
    // "a house whose roof is red": of what is not painted
    const bool is_said = at_ > 0 && is_any(at_ - 1, {"is", "are", "was", "were"});
    if (is_said && current_ == kNone && !phrases_.leads_to_noun(at_ + taken)) {
      at_ += taken;
      return true;
    }
    described_.colours.push_back({*colour, {at_, taken}});
    at_ += taken;
    return true;
  }
  const Phrase phrase = phrases_.phrase_at(at_);
  if (phrase.meaning == nullptr || pass_pattern(phrase)) return phrase.meaning != nullptr;
  const Span said{at_, phrase.tokens};
  at_ += phrase.tokens;
  switch (phrase.meaning->kind) {
    case Meaning::Kind::thing: add_thing(*phrase.meaning, said); break;
    case Meaning::Kind::font: described_.font = {phrase.meaning->index, said}; break;
    case Meaning::Kind::background: read_ground(*phrase.meaning, said); break;
    case Meaning::Kind::colour: break;  // above
  }
  return true;
}

void SceneReader::add_thing(const Meaning& meaning, Span said) {
  const Span colour = colour_of(said);
  if (is_named_again(meaning, said) || is_named_twice(meaning, said)) {
    if (colour.count > 0) scene_.groups[current_].said.noun.push_back(colour);
    return;
  }
  Group group;
  group.thing = meaning.index;
  group.said.noun = {said};
  if (described_.count && is_counted(meaning, said)) {
    group.count = described_.count->value;
    group.said.count = described_.count->at;
  } else if (meaning.plural) {
    const size_t colours = described_.colours.size();
    const bool one_each = colours > 1 && words_.things[meaning.index].usual.size() < 2;
    group.count = one_each ? colours : 2;
  }
  group.wanted = group.count;
  size_t before = said.first;
  while (before > 0 && (is(before - 1, Role::article) || number_of(phrases_[before - 1].lower))) {
    --before;
  }
  const bool is_whole = before > 1 && is(before - 1, "of") && unknown_ == before - 2;
  if (colour.count > 0) group.said.noun.push_back(colour);
  add(std::move(group));
  is_part_meant_ = is_whole && colour.count == 0;
}

Span SceneReader::colour_of(Span noun) const {
  size_t of = noun.first;
  while (of > 0 && is(of - 1, Role::article)) --of;
  const bool is_colour = of > 1 && is(of - 1, "of") && is_any(of - 2, {"colour", "color"});
  return is_colour ? Span{of - 2, 2} : Span{};
}

bool SceneReader::is_counted(const Meaning& meaning, Span said) const {
  const Named<size_t>& count = *described_.count;
  if (meaning.plural || count.value == 1) return true;
  if (count.at.first > 0 && phrases_.is_any(count.at.first - 1, {"a", "an"})) return false;
  size_t at = count.at.first + count.at.count;
  phrases_.description_at(at);
  return at == said.first;
}

bool SceneReader::is_named_again(const Meaning& meaning, Span said) {
  if (said.first == 0 || !is(said.first - 1, "the")) return false;
  const auto found = std::ranges::find_if(
      scene_.groups, [&](const Group& group) { return group.thing == meaning.index; });
  if (found == scene_.groups.end()) return false;
  const size_t again = static_cast<size_t>(found - scene_.groups.begin());
  found->said.noun.push_back(said);
  if (order_ != Order::any && again == current_ + 1) set_order(*found, order_);
  if (order_ != Order::any && again + 1 == current_) {
    set_order(scene_.groups[current_], opposite(order_));
  }
  order_ = Order::any;
  current_ = again;
  noun_end_ = at_;
  is_new_ = false;
  return true;
}

bool SceneReader::is_named_twice(const Meaning& meaning, Span said) {
  if (current_ == kNone || noun_end_ != said.first || said.first == 0) return false;
  Group& last = scene_.groups[current_];
  if (last.thing != meaning.index || last.wanted != 1) return false;
  if (phrases_[said.first - 1].lower == phrases_[said.first].lower) return false;
  if (meaning.plural) last.count = last.wanted = 2;
  last.said.noun.push_back(said);
  noun_end_ = at_;
  return true;
}

void SceneReader::add(Group group) {
  take_description(group, std::exchange(described_, {}));
  group.row = place_.row;
  group.column = place_.column;
  group.said.row = place_.said_row;
  group.said.column = place_.said_column;
  const bool is_next = current_ + 1 == scene_.groups.size();
  if (order_ != Order::any && is_next) set_order(group, order_);
  named_thing_ = group.thing;
  scene_.groups.push_back(std::move(group));
  current_ = scene_.groups.size() - 1;
  noun_end_ = at_;
  place_ = {};
  order_ = Order::any;
  heralds_.clear();
  is_part_meant_ = false;
  is_new_ = false;
}

void SceneReader::take_description(Group& group, const Description& found) {
  if (!found.colours.empty()) {
    group.colours.clear();
    group.said.colours.clear();
  }
  for (const Named<Rgb>& colour : found.colours) {
    group.colours.push_back(colour.value);
    group.said.colours.push_back(colour.at);
  }
  if (found.size) {
    group.size = found.size->value;
    group.said.size = found.size->at;
  }
  append(group.said.noun, found.plain);
  if (group.thing) return;
  if (found.font) {
    group.font = found.font->value;
    group.said.font = found.font->at;
  }
  if (!found.capitals) return;
  for (std::string& word : group.words) set_case(word, found.capitals->value);
  group.said.noun.push_back(found.capitals->at);
}

void SceneReader::set_case(std::string& word, bool capitals) {
  for (char& c : word) {
    if (capitals && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!capitals && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
}

void SceneReader::read_small_word() {
  if (phrases_.describe(at_, described_)) {
    ++at_;
    return;
  }
  // What was described before and never came is nothing that is known.
  if (is(at_, Role::article)) described_ = {};
  if (is(at_, Role::connector)) is_new_ = true;
  if (!is(at_, Role::function) && !is(at_, Role::joint)) pass_unknown();
  ++at_;
}

void SceneReader::pass_unknown() {
  const std::string_view word = phrases_[at_].lower;
  const bool has_article = at_ > 0 && (is(at_ - 1, Role::article) || described_.count);
  const bool is_participle =
      !has_article && (word.ends_with("ing") || word.ends_with("ed") || word.ends_with("ly"));
  // "a moon high above a house"
  const bool clings = at_ == noun_end_;
  unknown_ = at_;
  if (clings) noun_end_ = at_ + 1;
  if (word == "whose") return lose_thread();
  if (!clings && !is_participle && !phrases_.leads_to_noun(at_ + 1)) lose_thread();
}

void SceneReader::lose_thread() {
  described_ = {};
  place_ = {};
  order_ = Order::any;
  heralds_.clear();
  current_ = kNone;
  is_new_ = false;
}

Scene read_scene(const std::vector<Token>& tokens, const Words& words) {
  Scene scene = SceneReader(tokens, words).read();
  keep_most_elements(scene);
  return scene;
}

}  // namespace octet::demo
