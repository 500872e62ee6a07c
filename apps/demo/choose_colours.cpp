#include <algorithm>
#include <limits>
#include <span>

#include "demo/scene.h"

namespace octet::demo {
namespace {

// Each list begins with what is taken where nothing speaks against it.
constexpr Rgb kGrounds[] = {{250, 243, 220}, {135, 200, 240}, {255, 255, 255},
                            {205, 240, 205}, {20, 30, 90},    {70, 70, 70}};
constexpr Rgb kInks[] = {{27, 47, 107}, {255, 255, 255}, {139, 20, 20}, {15, 15, 15}};
constexpr Rgb kShapes[] = {{220, 40, 40},  {40, 90, 215},   {245, 179, 1},
                           {40, 160, 70},  {125, 60, 170},  {245, 140, 30},
                           {20, 140, 140}, {255, 255, 255}, {20, 30, 90}};

// Distances at which one stands out from another; those of the training scenes are similar.
constexpr double kThingFromGround = 0.25, kInkFromGround = 0.45, kThingFromThing = 0.2;
constexpr double kParts = 0.15;  // the two colours of a thing, its own or beside a named one

double nearest(const Rgb& colour, std::span<const Rgb> others) {
  double least = std::numeric_limits<double>::max();
  for (const Rgb& other : others) least = std::min(least, distance(colour, other));
  return least;
}

// Chooses where the text names nothing.
class Chooser {
 public:
  Chooser(const Scene& scene, const Words& words) : words_(words) {
    forbid(scene, [](const Negation& each) { return !each.thing && !each.group; });
  }

  // For one group: also what is forbidden of it alone, as in "no red stars" and "a heart, not red".
  Chooser(const Scene& scene, size_t group, const Words& words) : Chooser(scene, words) {
    const std::optional<size_t> thing = scene.groups[group].thing;
    forbid(scene, [&](const Negation& each) {
      return each.group == group || (each.thing && each.thing == thing);
    });
  }

  Rgb ground_for(const Scene& scene) const {
    std::vector<Rgb> shown;
    for (const Group& group : scene.groups) {
      const std::vector<Rgb>& usual =
          group.colours.empty() && group.thing ? words_.things[*group.thing].usual : group.colours;
      shown.insert(shown.end(), usual.begin(), usual.end());
    }
    return pick(kGrounds, shown, kThingFromGround);
  }

  Rgb ink_on(std::span<const Rgb> grounds) const { return pick(kInks, grounds, kInkFromGround); }

  void choose_for_thing(Group& group, std::span<const Rgb> grounds, std::vector<Rgb>& used) const {
    const std::vector<Rgb>& usual = words_.things[*group.thing].usual;
    std::vector<Rgb>& colours = group.colours;
    const size_t needed = std::max<size_t>(1, usual.size());
    if (colours.empty()) {
      const bool suits = !usual.empty() && nearest(usual[0], grounds) >= kThingFromGround &&
                         std::ranges::all_of(usual, [&](const Rgb& each) { return allows(each); });
      colours = suits ? usual : std::vector{pick(kShapes, grounds, kThingFromGround, used)};
    }
    if (colours.size() < needed) {
      const bool suits = nearest(usual[1], colours) >= kParts &&
                         nearest(usual[1], grounds) >= kParts && allows(usual[1]);
      colours.push_back(suits ? usual[1] : pick(kShapes, grounds, kThingFromGround, colours));
    }
    // Several colours of things that have one each belong to one after the other.
    if (needed > 1 || group.count == 1) colours.resize(needed);
    used.insert(used.end(), colours.begin(), colours.end());
  }

 private:
  template <class Condition>
  void forbid(const Scene& scene, const Condition& condition) {
    for (const Negation& each : scene.negations) {
      if (!condition(each)) continue;
      forbidden_.insert(forbidden_.end(), each.colours.begin(), each.colours.end());
    }
  }

  bool allows(const Rgb& colour) const {
    return std::ranges::none_of(forbidden_,
                                [&](const Rgb& each) { return words_.is_kind_of(colour, each); });
  }

  // The first that is `least` away from `grounds` and kThingFromThing from `others`, else the
  // farthest from the grounds.
  Rgb pick(std::span<const Rgb> candidates, std::span<const Rgb> grounds, double least,
           std::span<const Rgb> others = {}) const {
    for (const Rgb& each : candidates) {
      const bool stands_out =
          nearest(each, grounds) >= least && nearest(each, others) >= kThingFromThing;
      if (stands_out && allows(each)) return each;
    }
    return *std::max_element(candidates.begin(), candidates.end(), [&](const Rgb& a, const Rgb& b) {
      return nearest(a, grounds) < nearest(b, grounds);
    });
  }

  const Words& words_;
  std::vector<Rgb> forbidden_;
};

}  // namespace

void choose_colours(Scene& scene, const Words& words) {
  const Chooser chooser(scene, words);
  if (scene.background.empty()) scene.background = {chooser.ground_for(scene)};
  std::vector<Rgb> used;
  for (const Group& group : scene.groups) {
    used.insert(used.end(), group.colours.begin(), group.colours.end());
  }
  for (size_t i = 0; i < scene.groups.size(); ++i) {
    Group& group = scene.groups[i];
    const Chooser own(scene, i, words);
    if (group.thing) {
      own.choose_for_thing(group, scene.background, used);
    } else if (group.colours.empty()) {
      group.colours = {own.ink_on(scene.background)};
    }
  }
}

}  // namespace octet::demo
