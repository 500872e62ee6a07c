#include "engine/residency.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/invalid_request.h"
#include "formats/text.h"

namespace octet::engine {
namespace {

std::optional<Residency> rule_for(const std::vector<KeepRule>& rules, const std::string& part) {
  std::optional<Residency> found;
  for (const KeepRule& rule : rules) {
    if (rule.part.empty() || rule.part == part) found = rule.where;
  }
  return found;
}

}  // namespace

void check_rules(const std::vector<KeepRule>& rules, const std::vector<PartNeed>& parts) {
  for (const KeepRule& rule : rules) {
    const bool known = rule.part.empty() ||
                       std::any_of(parts.begin(), parts.end(),
                                   [&](const PartNeed& part) { return part.name == rule.part; });
    std::string names;
    for (const PartNeed& part : parts) names += (names.empty() ? "" : ", ") + part.name;
    check_value(known, "keep", "`keep`: the model has no part {}, expected one of {}",
                in_quotes(rule.part), names);
  }
}

std::vector<PartPlace> plan_residency(const std::vector<PartNeed>& parts,
                                      const std::vector<KeepRule>& rules,
                                      const MemoryAtHand& memory) {
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (parts[a].runs_often != parts[b].runs_often) return parts[a].runs_often;
    return !parts[a].runs_often && parts[a].bytes < parts[b].bytes;
  });
  // A part that is streamed needs room next to those that stay.
  uint64_t passing = 0;
  for (const PartNeed& part : parts) {
    if (!part.runs_often) passing = std::max(passing, part.largest_unit);
  }
  uint64_t taken = memory.work + passing, on_host = 0;
  const auto take = [&](const PartNeed& part, Residency where) {
    if (where == Residency::device) taken += part.bytes;
    if (where == Residency::host) on_host += part.bytes;
  };
  // If the host's memory is the device's, there is nothing to copy.
  const auto placed = [&](Residency where) {
    return memory.shared && where == Residency::host ? Residency::device : where;
  };
  for (const PartNeed& part : parts) {
    if (const auto rule = rule_for(rules, part.name)) take(part, placed(*rule));
  }
  std::vector<PartPlace> plan(parts.size());
  for (const size_t i : order) {
    const PartNeed& part = parts[i];
    const auto rule = rule_for(rules, part.name);
    const bool fits = taken + part.bytes <= memory.device;
    Residency where = Residency::streamed;
    if (rule) {
      where = placed(*rule);
    } else if (part.once && !part.runs_often) {
      where = Residency::streamed;
    } else if (fits || (memory.shared && part.runs_often)) {
      where = Residency::device;
    } else if (!memory.shared && on_host + part.bytes <= memory.host) {
      where = Residency::host;
    }
    if (!rule) take(part, where);
    plan[i] = {part.name, where, part.bytes};
  }
  return plan;
}

std::string text_of(const std::vector<PartPlace>& plan) {
  std::string text;
  for (const PartPlace& place : plan) {
    const std::string device = place.device.empty() ? "the device" : place.device;
    const std::string where = place.where == Residency::device ? "on " + device
                              : place.where == Residency::host ? "in host memory"
                                                               : "streamed";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", place.part, where);
  }
  return text;
}

}  // namespace octet::engine
