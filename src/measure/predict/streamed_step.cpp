#include "measure/predict/streamed_step.h"

#include <algorithm>

#include "base/error.h"

namespace octet::predict {
namespace {

constexpr double kMeasuredBusShare = 55.3 / 64;

// The clockwork of engine/weight_stream.cpp, with times in the place of work.
class StreamClock {
 public:
  StreamClock(std::span<const UnitRun> units, int buffers, double gbs)
      : units_(units), bytes_per_ms_(gbs * 1e6) {
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      if (units_[unit].streamed_bytes > 0) items_.push_back({unit, 0});
    }
    const size_t slots = std::min(static_cast<size_t>(buffers), items_.size());
    slots_.resize(slots);
    for (size_t i = 0; i < items_.size(); ++i) items_[i].slot = i % slots;
    if (slots > 2 && items_.back().slot == 0) items_.back().slot = 1;
  }

  void run_step() {
    step_ = {};
    const double begin = now_;
    size_t item = 0;
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      if (units_[unit].streamed_bytes > 0) need(item++);
      const double end = now_ + units_[unit].ms;
      step_.units.push_back({unit, now_, end});
      now_ = end;
    }
    step_.ms = now_ - begin;
    for (auto* list : {&step_.units, &step_.copies}) {
      for (StreamedStep::Interval& each : *list) {
        each.begin_ms -= begin;
        each.end_ms -= begin;
      }
    }
  }

  StreamedStep take() { return std::move(step_); }

 private:
  static constexpr size_t kEmpty = SIZE_MAX;
  struct Item {
    size_t unit, slot;
  };
  struct Slot {
    size_t holds = kEmpty;
    double arrived = 0;
  };

  // Behind all units so far, and behind the copy before it.
  void send(size_t item) {
    Slot& slot = slots_[items_[item].slot];
    const UnitRun& unit = units_[items_[item].unit];
    const double begin = std::max(now_, bus_free_);
    bus_free_ = begin + static_cast<double>(unit.streamed_bytes) / bytes_per_ms_;
    slot = {item, bus_free_};
    step_.copies.push_back({items_[item].unit, begin, bus_free_});
  }

  void need(size_t item) {
    const Slot& slot = slots_[items_[item].slot];
    if (slot.holds != item) send(item);
    std::vector<bool> taken(slots_.size());
    for (size_t i = 0, next = item; i < slots_.size(); ++i, next = (next + 1) % items_.size()) {
      const size_t at = items_[next].slot;
      if (taken[at]) break;
      taken[at] = true;
      if (slots_[at].holds != next) send(next);
    }
    now_ = std::max(now_, slot.arrived);
  }

  std::span<const UnitRun> units_;
  double bytes_per_ms_;
  std::vector<Item> items_;
  std::vector<Slot> slots_;
  double now_ = 0, bus_free_ = 0;
  StreamedStep step_;
};

}  // namespace

double host_gbs(const Card& card) { return card.pcie_gbs * kMeasuredBusShare; }

std::vector<UnitRun> unit_runs(const std::vector<engine::PartNeed>& parts,
                               const engine::DevicePlan& plan, std::span<const double> pass_ms) {
  std::vector<UnitRun> runs;
  size_t network = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    if (parts[part].visits == 0) continue;
    check(network < pass_ms.size(), "predict: {} networks, and the times of {}", network + 1,
          pass_ms.size());
    const double ms = pass_ms[network++] / plan.places[part].layers;
    for (int visit = 0; visit < parts[part].visits; ++visit) {
      for (size_t unit = 0; unit < parts[part].units.size(); ++unit) {
        const engine::UnitNeed& need = parts[part].units[unit];
        if (need.prepares) continue;
        const bool stays = plan.units[part][unit] == Residency::device;
        runs.push_back(
            {.ms = parts[part].is_layer(unit) ? ms : 0, .streamed_bytes = stays ? 0 : need.bytes});
      }
    }
  }
  return runs;
}

StreamedStep streamed_step(std::span<const UnitRun> units, int buffers, double gbs) {
  constexpr int kSteps = 4;  // the first ones begin with empty buffers
  StreamClock clock(units, buffers, gbs);
  for (int i = 0; i < kSteps; ++i) clock.run_step();
  return clock.take();
}

}  // namespace octet::predict
