#include "engine/residency.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "base/invalid_request.h"
#include "formats/text.h"

namespace octet::engine {
namespace {

// Three buffers: one is used, one has arrived, one is on its way. (Two would leave room for a layer
// more, and less slack where layers that stay are unevenly spread; that was not measured.)
constexpr int kBuffers = 3;
// Where memory is shared nothing is copied: one unit is used, and the next one is being read.
constexpr int kSharedBuffers = 2;
// A unit that is smaller than the largest by this much always stays: it saves nothing.
constexpr uint64_t kSmallShare = 32;

std::optional<Residency> rule_for(const std::vector<KeepRule>& rules, const std::string& part) {
  std::optional<Residency> found;
  for (const KeepRule& rule : rules) {
    if (rule.part.empty() || rule.part == part) found = rule.where;
  }
  return found;
}

class ResidencyPlanner {
 public:
  ResidencyPlanner(const std::vector<PartNeed>& parts, const std::vector<KeepRule>& rules,
                   const MemoryAtHand& memory)
      : parts_(parts), rules_(rules), memory_(memory) {
    for (const PartNeed& part : parts_) plan_.units.emplace_back(part.units.size());
    plan_.at_hand = memory.device;
  }

  DevicePlan run() {
    place_ruled();
    place_networks();
    place_others();
    summarise();
    return std::move(plan_);
  }

 private:
  struct UnitAt {
    size_t part, unit;
  };

  const UnitNeed& need(UnitAt at) const { return parts_[at.part].units[at.unit]; }
  Residency& place(UnitAt at) { return plan_.units[at.part][at.unit]; }
  // If the host's memory is the device's, there is nothing to copy.
  Residency possible(Residency where) const {
    return memory_.shared && where == Residency::host ? Residency::device : where;
  }
  int most_buffers() const { return memory_.shared ? kSharedBuffers : kBuffers; }
  void put(UnitAt at, Residency where) {
    place(at) = where;
    if (where == Residency::device) taken_ += need(at).bytes;
    if (where == Residency::host) on_host_ += need(at).bytes;
  }
  void put_all(size_t part, Residency where) {
    for (size_t unit = 0; unit < parts_[part].units.size(); ++unit) put({part, unit}, where);
  }
  Residency with_host(uint64_t bytes) const {
    const bool fits = !memory_.shared && on_host_ + bytes <= memory_.host;
    return fits ? Residency::host : Residency::streamed;
  }

  void place_ruled();
  void place_networks();
  void stream_networks(const std::vector<size_t>& networks);
  void place_waiting(const std::vector<UnitAt>& waiting, const std::vector<UnitAt>& preparing);
  void place_others();
  void summarise();

  const std::vector<PartNeed>& parts_;
  const std::vector<KeepRule>& rules_;
  const MemoryAtHand& memory_;
  DevicePlan plan_;
  std::vector<bool> is_placed_ = std::vector<bool>(parts_.size());
  uint64_t taken_ = 0, on_host_ = 0;
};

void ResidencyPlanner::place_ruled() {
  for (size_t part = 0; part < parts_.size(); ++part) {
    const auto rule = rule_for(rules_, parts_[part].name);
    if (!rule) continue;
    const Residency where = possible(*rule);
    put_all(part, where);
    is_placed_[part] = true;
    if (parts_[part].visits == 0 || where == Residency::device) continue;
    plan_.buffers = most_buffers();
    for (const UnitNeed& unit : parts_[part].units) {
      if (unit.prepares) continue;
      plan_.buffer_bytes = std::max(plan_.buffer_bytes, unit.bytes);
      const uint64_t bytes = unit.bytes * static_cast<uint64_t>(parts_[part].visits);
      plan_.streamed_bytes += bytes;
      if (where == Residency::streamed) plan_.read_bytes += bytes;
    }
  }
}

// A part that is streamed needs room next to those that stay.
uint64_t passing_bytes(const std::vector<PartNeed>& parts) {
  uint64_t most = 0;
  for (const PartNeed& part : parts) {
    if (part.visits == 0) most = std::max(most, part.largest_unit());
  }
  return most;
}

void ResidencyPlanner::place_networks() {
  std::vector<size_t> networks;
  uint64_t all = 0;
  for (size_t part = 0; part < parts_.size(); ++part) {
    if (parts_[part].visits == 0 || is_placed_[part]) continue;
    networks.push_back(part);
    all += parts_[part].bytes();
    is_placed_[part] = true;
  }
  const uint64_t beside =
      std::max(memory_.work + static_cast<uint64_t>(plan_.buffers) * plan_.buffer_bytes,
               memory_.other_work + passing_bytes(parts_));
  if (networks.empty() || taken_ + all + beside <= memory_.device) {
    for (const size_t part : networks) put_all(part, Residency::device);
  } else {
    stream_networks(networks);
  }
}

// `count` of `all`, evenly: which of them the index is, or not one.
bool is_chosen(size_t index, size_t count, size_t all) {
  return (index + 1) * count / all > index * count / all;
}

void ResidencyPlanner::stream_networks(const std::vector<size_t>& networks) {
  std::vector<UnitAt> units, waiting, preparing;
  uint64_t largest_preparing = 0;  // it comes alone, before the others
  uint64_t largest = plan_.buffer_bytes;
  for (const size_t part : networks) {
    for (const UnitNeed& unit : parts_[part].units) {
      if (!unit.prepares) largest = std::max(largest, unit.bytes);
    }
  }
  for (const size_t part : networks) {
    for (size_t unit = 0; unit < parts_[part].units.size(); ++unit) {
      const UnitAt at{part, unit};
      if (need(at).prepares) {
        // Only a picture with another text or schedule needs it again.
        largest_preparing = std::max(largest_preparing, need(at).bytes);
        parts_[part].once ? put(at, Residency::streamed) : preparing.push_back(at);
      } else if (need(at).bytes * kSmallShare < largest) {
        put(at, Residency::device);
      } else {
        units.push_back(at);
      }
    }
  }
  // Those that are visited least often leave first.
  std::stable_sort(units.begin(), units.end(), [&](UnitAt a, UnitAt b) {
    return parts_[a.part].visits < parts_[b.part].visits;
  });
  const auto beside_for = [&](int buffers) {
    const uint64_t coming = std::max(static_cast<uint64_t>(buffers) * largest, largest_preparing);
    return std::max(memory_.work + coming, memory_.other_work + passing_bytes(parts_));
  };
  plan_.least = taken_ + beside_for(1);
  plan_.buffers = most_buffers();
  while (plan_.buffers > 1 &&
         taken_ + memory_.work + static_cast<uint64_t>(plan_.buffers) * largest > memory_.device) {
    --plan_.buffers;
  }
  plan_.buffer_bytes = largest;
  const uint64_t beside = beside_for(plan_.buffers);
  const uint64_t room = memory_.device - std::min(memory_.device, taken_ + beside);
  // As few as possible leave.
  std::vector<bool> leaves;
  for (size_t leaving = 0; leaving <= units.size(); ++leaving) {
    leaves.assign(units.size(), false);
    uint64_t bytes = 0;
    for (size_t begin = 0, left = leaving; begin < units.size();) {
      size_t end = begin;
      const auto visits = [&](size_t i) { return parts_[units[i].part].visits; };
      while (end < units.size() && visits(end) == visits(begin)) ++end;
      const size_t count = std::min(left, end - begin);
      for (size_t i = begin; i < end; ++i) {
        leaves[i] = is_chosen(i - begin, count, end - begin);
        if (!leaves[i]) bytes += need(units[i]).bytes;
      }
      left -= count;
      begin = end;
    }
    if (bytes <= room) break;
  }
  for (size_t i = 0; i < units.size(); ++i) {
    if (leaves[i]) {
      waiting.push_back(units[i]);
      plan_.streamed_bytes +=
          need(units[i]).bytes * static_cast<uint64_t>(parts_[units[i].part].visits);
    } else {
      put(units[i], Residency::device);
    }
  }
  place_waiting(waiting, preparing);
}

// Where host memory is short, what prepares goes first: it is read only for another text or
// schedule. Of the rest, those that are read are spread, too: the host reads one while the device
// computes with those before it.
void ResidencyPlanner::place_waiting(const std::vector<UnitAt>& waiting,
                                     const std::vector<UnitAt>& preparing) {
  uint64_t all = 0;
  for (const UnitAt at : waiting) all += need(at).bytes;
  const uint64_t room = memory_.shared ? 0 : memory_.host - std::min(memory_.host, on_host_);
  size_t read = 0;
  while (read < waiting.size() && all > room) {
    ++read;
    all = 0;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (!is_chosen(i, read, waiting.size())) all += need(waiting[i]).bytes;
    }
  }
  for (size_t i = 0; i < waiting.size(); ++i) {
    const bool is_read = is_chosen(i, read, waiting.size());
    put(waiting[i], is_read ? Residency::streamed : Residency::host);
    if (is_read) {
      plan_.read_bytes +=
          need(waiting[i]).bytes * static_cast<uint64_t>(parts_[waiting[i].part].visits);
    }
  }
  for (const UnitAt at : preparing) put(at, with_host(need(at).bytes));
}

void ResidencyPlanner::place_others() {
  std::vector<size_t> others;
  for (size_t part = 0; part < parts_.size(); ++part) {
    if (!is_placed_[part]) others.push_back(part);
  }
  std::stable_sort(others.begin(), others.end(),
                   [&](size_t a, size_t b) { return parts_[a].bytes() < parts_[b].bytes(); });
  const uint64_t beside =
      std::max(memory_.work + static_cast<uint64_t>(plan_.buffers) * plan_.buffer_bytes,
               memory_.other_work + passing_bytes(parts_));
  for (const size_t part : others) {
    const uint64_t bytes = parts_[part].bytes();
    if (parts_[part].once) {
      put_all(part, Residency::streamed);
    } else if (taken_ + bytes + beside <= memory_.device) {
      put_all(part, Residency::device);
    } else {
      put_all(part, with_host(bytes));
    }
  }
  plan_.taken = taken_ + memory_.work + static_cast<uint64_t>(plan_.buffers) * plan_.buffer_bytes;
}

void ResidencyPlanner::summarise() {
  for (size_t part = 0; part < parts_.size(); ++part) {
    PartPlace& made = plan_.places.emplace_back(
        PartPlace{.part = parts_[part].name, .bytes = parts_[part].bytes()});
    for (size_t unit = 0; unit < parts_[part].units.size(); ++unit) {
      const UnitNeed& each = parts_[part].units[unit];
      const Residency where = plan_.units[part][unit];
      (where == Residency::device ? made.device_bytes
       : where == Residency::host ? made.host_bytes
                                  : made.file_bytes) += each.bytes;
      if (!parts_[part].is_layer(unit)) continue;
      ++made.layers;
      if (where == Residency::device) ++made.layers_on_device;
      if (where == Residency::host) ++made.layers_on_host;
    }
    made.where = made.layers_on_device == made.layers                         ? Residency::device
                 : made.layers_on_device + made.layers_on_host == made.layers ? Residency::host
                                                                              : Residency::streamed;
  }
}

}  // namespace

uint64_t PartNeed::bytes() const {
  uint64_t sum = 0;
  for (const UnitNeed& unit : units) sum += unit.bytes;
  return sum;
}

uint64_t PartNeed::largest_unit() const {
  uint64_t most = 0;
  for (const UnitNeed& unit : units) most = std::max(most, unit.bytes);
  return most;
}

bool PartNeed::is_layer(size_t unit) const {
  uint64_t largest = 0;
  for (const UnitNeed& each : units) {
    if (!each.prepares) largest = std::max(largest, each.bytes);
  }
  return !units[unit].prepares && units[unit].bytes * kSmallShare >= largest;
}

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

DevicePlan plan_residency(const std::vector<PartNeed>& parts, const std::vector<KeepRule>& rules,
                          const MemoryAtHand& memory) {
  DevicePlan plan = ResidencyPlanner(parts, rules, memory).run();
  if (plan.read_bytes == 0 || memory.shared) return plan;
  // Whole, before it is moved to its buffer.
  MemoryAtHand with_landing = memory;
  with_landing.work += plan.buffer_bytes + memory.landing;
  return ResidencyPlanner(parts, rules, with_landing).run();
}

std::string text_of(const std::vector<PartPlace>& plan) {
  std::string text;
  for (const PartPlace& place : plan) {
    const std::string device = place.device.empty() ? "the device" : place.device;
    const int read = place.layers - place.layers_on_device - place.layers_on_host;
    std::string where;
    if (place.where == Residency::device) {
      where = "on " + device;
    } else if (place.layers_on_device == 0 && read == 0) {
      where = "in host memory";
    } else if (read == place.layers) {
      where = "streamed";
    } else {
      where = fmt::format("{} of {} layers on {}", place.layers_on_device, place.layers, device);
      if (place.layers_on_host > 0)
        where += fmt::format(", {} in host memory", place.layers_on_host);
      if (read > 0) where += fmt::format(", {} streamed", read);
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", place.part, where);
  }
  return text;
}

}  // namespace octet::engine
