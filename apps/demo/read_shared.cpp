// Things of one noun that is said once: "two red and three blue circles", "and a blue one".
#include <utility>

#include "demo/scene_reader.h"

namespace octet::demo {

bool SceneReader::read_shared_noun() {
  struct Member {
    Description found;
    size_t count = 1;
    Span said_count = {};
  };
  std::vector<Member> members;
  size_t at = at_;
  for (;;) {
    Member member;
    const auto number = phrases_.is_word(at) ? number_of(phrases_[at].lower) : std::nullopt;
    if (!number && !is_any(at, {"a", "an"})) return false;
    if (number) member.count = *number;
    if (number) member.said_count = {at, 1};
    const size_t first = ++at;
    for (size_t taken = 0; at < phrases_.size() && !phrases_.is_text(at); at += taken) {
      if (const auto colour = phrases_.colour_at(at, taken)) {
        member.found.colours.push_back({*colour, {at, taken}});
      } else if (!number_of(phrases_[at].lower) && phrases_.describe(at, member.found)) {
        taken = 1;
      } else {
        break;
      }
    }
    if (at == first) return false;
    members.push_back(std::move(member));
    const size_t last = at;
    if (phrases_.is_mark(at) && phrases_[at].text == ",") ++at;
    if (is(at, "and")) ++at;
    if (at == last) break;
  }
  const Phrase noun = phrases_.phrase_at(at);
  if (members.size() < 2 || !noun.is(Meaning::Kind::thing) || phrases_.is_text(at)) return false;
  at_ = at + noun.tokens;
  for (Member& member : members) {
    Group group;
    group.thing = noun.meaning->index;
    group.count = group.wanted = member.count;
    group.said.noun = {{at, noun.tokens}};
    group.said.count = member.said_count;
    group.said.shares_noun = true;
    described_ = std::move(member.found);
    add(std::move(group));
  }
  return true;
}

bool SceneReader::read_shares() {
  if (current_ == kNone || !phrases_.is_word(at_) || !number_of(phrases_[at_].lower)) return false;
  Group& group = scene_.groups[current_];
  const bool has_one_colour = group.thing && words_.things[*group.thing].usual.size() < 2;
  if (!has_one_colour || group.wanted < 2 || !group.colours.empty()) return false;
  Group shared = group;
  size_t at = at_, end = at_;
  while (phrases_.is_word(at) && shared.colours.size() < group.wanted) {
    const auto number = number_of(phrases_[at].lower);
    size_t taken = 0;
    const auto colour = number ? phrases_.colour_at(at + 1, taken) : std::nullopt;
    if (!colour || *number > group.wanted) return false;
    shared.said.noun.push_back({at, 1});
    shared.colours.insert(shared.colours.end(), *number, *colour);
    shared.said.colours.insert(shared.said.colours.end(), *number, {at + 1, taken});
    at = end = at + 1 + taken;
    if (phrases_.is_mark(at) && phrases_[at].text == ",") ++at;
    if (is(at, "and")) ++at;
  }
  if (shared.colours.size() != group.wanted || phrases_.leads_to_noun(end)) return false;
  group = std::move(shared);
  at_ = noun_end_ = end;
  return true;
}

bool SceneReader::share_colours(const Description& found) {
  const size_t count = found.colours.size(), groups = scene_.groups.size();
  if (count < 2 || count > groups || current_ + 1 != groups) return false;
  for (size_t i = groups - count; i < groups; ++i) {
    const Group& group = scene_.groups[i];
    const bool has_one_colour = !group.thing || words_.things[*group.thing].usual.size() < 2;
    if (!has_one_colour || group.elements() != 1 || !group.colours.empty()) return false;
  }
  for (size_t i = 0; i < count; ++i) {
    Description one;
    one.colours = {found.colours[i]};
    take_description(scene_.groups[groups - count + i], one);
  }
  return true;
}

bool SceneReader::read_one_more() {
  if (!is_any(at_, {"one", "ones"}) || at_ == 0 || !named_thing_) return false;
  const bool is_described = (!described_.colours.empty() || described_.size) &&
                            !is(at_ - 1, Role::article) && !is(at_ - 1, "and");
  if (!is_described || phrases_.phrase_at(at_ + 1).is(Meaning::Kind::thing)) {
    return false;
  }
  Group group;
  group.thing = named_thing_;
  group.said.noun = {{at_, 1}};
  if (described_.count) {
    group.count = described_.count->value;
    group.said.count = described_.count->at;
  } else if (is(at_, "ones")) {
    group.count = 2;
  }
  group.wanted = group.count;
  ++at_;
  add(std::move(group));
  return true;
}

}  // namespace octet::demo
