#include "engine/weight_stream.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace octet::engine {

// Neighbours have different buffers, also the last item and the first one, which follows it in the
// next step.
void WeightStream::open(std::span<PartStore* const> stores) {
  close();
  for (PartStore* store : stores) {
    const size_t first = items_.size();
    for (const int64_t unit : store->streamed_units()) items_.push_back({store, unit, 0});
    if (items_.size() > first) ranges_[store] = {first, items_.size()};
  }
  if (items_.empty()) return;
  const size_t slots = std::min(static_cast<size_t>(buffer_count_), items_.size());
  for (size_t i = 0; i < items_.size(); ++i) items_[i].slot = i % slots;
  if (items_.size() > 1 && slots > 2 && items_.back().slot == 0) items_.back().slot = 1;
  try {
    memory_ = backend_.allocate(slots * buffer_bytes_);
    for (size_t i = 0; i < slots; ++i) {
      slots_.push_back({.memory = memory_.data() + i * buffer_bytes_, .sent = {}});
    }
    for (const Item& item : items_) {
      item.store->attach(item.unit, slots_[item.slot].memory);
      item.store->set_stream(this);
    }
    send(0);
    look_ahead(0);
  } catch (...) {
    close();
    throw;
  }
}

void WeightStream::close() {
  // Copies that are under way end before their memory is another's.
  // (A device that failed has none, and says so elsewhere: destructors come here.)
  for (const Slot& slot : slots_) {
    try {
      backend_.wait(slot.sent);
    } catch (const std::exception& error) {
      log::debug("weight stream: {}", error.what());
    }
  }
  for (const Item& item : items_) {
    item.store->set_stream(nullptr);
    item.store->detach(item.unit);
  }
  slots_.clear();
  items_.clear();
  ranges_.clear();
  expected_ = nullptr;
  memory_ = {};
}

void WeightStream::send(size_t item) {
  const Item& what = items_[item];
  Slot& slot = slots_[what.slot];
  slot.holds = kNothing;
  const size_t begin = trace_ != nullptr ? backend_.mark_copies() : 0;
  slot.sent = what.store->send(what.unit, slot.memory, buffer_bytes_);
  slot.holds = item;
  if (trace_ != nullptr) {
    trace_->copies.push_back({what.store, what.unit, begin, backend_.mark_copies()});
  }
  sent_bytes_ += what.store->bytes_of(what.unit);
}

// In the order of use. Behind the last one of a pass comes the first one of the next; a network
// that stays is passed over.
size_t WeightStream::after(size_t item) const {
  const Range& range = ranges_.at(items_[item].store);
  if (item + 1 < range.end) return item + 1;
  const auto next = ranges_.find(expected_);
  return next == ranges_.end() ? range.first : next->second.first;
}

// A copy starts behind all ops called so far, which are the last that use what its buffer holds.
// What comes from files is not read ahead here: the host would be busy with it while the device
// waits for the ops that follow this call.
void WeightStream::look_ahead(size_t item) {
  std::vector<bool> taken(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i, item = after(item)) {
    const Item& what = items_[item];
    if (taken[what.slot]) return;
    taken[what.slot] = true;
    if (slots_[what.slot].holds == item) continue;
    if (what.store->place_of(what.unit) == Residency::streamed) return;
    send(item);
  }
}

void WeightStream::need(const PartStore& store, int64_t unit) {
  const Range& range = ranges_.at(&store);
  const auto first = items_.begin() + static_cast<std::ptrdiff_t>(range.first);
  const auto last = items_.begin() + static_cast<std::ptrdiff_t>(range.end);
  const auto found = std::ranges::lower_bound(first, last, unit, std::less<int64_t>(), &Item::unit);
  octet::check(found != last && found->unit == unit, "weight stream: {} has no unit {}",
               store.part().name(), unit);
  const auto item = static_cast<size_t>(found - items_.begin());
  Slot& slot = slots_[found->slot];
  const size_t begin = trace_ != nullptr ? backend_.mark() : 0;
  if (slot.holds != item) send(item);
  look_ahead(item);
  backend_.wait(slot.sent);
  if (trace_ != nullptr) trace_->waits.push_back({&store, unit, begin, backend_.mark()});
}

}  // namespace octet::engine
