#include <algorithm>
#include <utility>

#include "demo/scene_reader.h"

namespace octet::demo {

void SceneReader::set_background(const std::vector<Named<Rgb>>& colours, size_t most,
                                 std::vector<Span> said) {
  scene_.background.clear();
  for (size_t i = 0; i < std::min(most, colours.size()); ++i) {
    scene_.background.push_back(colours[i].value);
    said.push_back(colours[i].at);
  }
  scene_.said_background = std::move(said);
}

void SceneReader::read_ground(const Meaning& meaning, Span noun) {
  Description found = std::exchange(described_, {});
  std::vector<Span> said = {noun};
  order_ = Order::any;
  if (found.colours.empty()) {
    size_t at = at_;
    while (is_any(at, {"is", "in", "of", "should", "be"})) ++at;
    const Span joined{at_, at - at_};
    const Description behind = phrases_.description_at(at);
    if (!behind.colours.empty() && ends_description(at)) {
      found.colours = behind.colours;
      append(found.plain, behind.plain);
      said.push_back(joined);
      at_ = at;
    }
  }
  if (found.colours.empty() && meaning.colour && scene_.background.empty()) {
    found.colours = {{*meaning.colour, noun}};
  }
  if (found.colours.empty() && found.plain.empty()) return lose_thread();
  size_t first = noun.first;
  for (const Named<Rgb>& colour : found.colours) first = std::min(first, colour.at.first);
  if (const size_t end = unwanted_end(at_)) {
    Negation negation{.said = {first, end - first}, .always_there = found.colours.empty()};
    for (const Named<Rgb>& colour : found.colours) negation.colours.push_back(colour.value);
    scene_.negations.push_back(std::move(negation));
    at_ = end;
    return lose_thread();
  }
  for (const Span& plain : found.plain) first = std::min(first, plain.first);
  said.push_back({phrases_.with_joint(first), 1});
  append(said, found.plain);
  if (!found.colours.empty()) return set_background(found.colours, 1, std::move(said));
  append(scene_.said_background, said);
}

bool SceneReader::ends_description(size_t at) const {
  if (phrases_.names_element(at)) return false;
  return !phrases_.is_content(at) || is(at, Role::negation) || phrases_.names_text(at) ||
         is(at, Role::typeface) || is_any(at, {"instead", "rather"});
}

bool SceneReader::read_background() {
  const bool is_gradient = is(at_, "gradient");
  if (!is_gradient && !is_any(at_, {"on", "over", "against"})) return false;
  size_t at = at_ + 1;
  while (is_gradient && is_any(at, {"from", "of", "in", "background"})) ++at;
  Description found = phrases_.description_at(at);
  size_t first = at_;
  if (is_gradient && !described_.colours.empty()) {
    found = std::exchange(described_, {});
    first = found.colours.front().at.first;
    at = at_ + 1;
  }
  const Phrase ground = phrases_.phrase_at(at);
  const bool has_ground = ground.is(Meaning::Kind::background);
  if (found.colours.empty() || !(has_ground || ends_description(at))) {
    if (is_gradient) lose_thread();
    if (is_gradient) ++at_;
    return is_gradient;
  }
  described_ = {};
  std::vector<Span> said = {{at_, 1}};
  append(said, found.plain);
  for (size_t i = first; i < at; ++i) {
    if (is(i, Role::joint) || is(i, "background")) said.push_back({i, 1});
  }
  if (is_gradient && first > 0 && is(first - 1, "vertical")) said.push_back({first - 1, 1});
  if (has_ground) said.push_back({at, ground.tokens});
  set_background(found.colours, is_gradient ? 2 : 1, std::move(said));
  if (is_gradient && scene_.background.size() == 1) {
    scene_.background.push_back(paler(scene_.background.front()));
  }
  at_ = at + (has_ground ? ground.tokens : 0);
  return true;
}

Rgb SceneReader::paler(const Rgb& colour) {
  const auto half = [](int part) { return (part + 255) / 2; };
  return {half(colour.red), half(colour.green), half(colour.blue)};
}

}  // namespace octet::demo
