// Where the allocations of a piece of work lie in one block of memory: when the work runs again,
// and allocates in the same order, each gets the place that it had, and nothing is allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace octet {

class MemoryPlan {
 public:
  struct Place {
    size_t offset = 0;
    size_t bytes = 0;  // as requested
  };

  // The next allocation: the lowest place that is free meanwhile. Returns its number.
  size_t add(size_t bytes) {
    // As aligned as any backend's own memory, and at least so far apart: a view of no elements
    // still wants an address of its own.
    constexpr size_t kApart = 256;
    const size_t taken = std::max((bytes + kApart - 1) / kApart * kApart, kApart);
    size_t offset = 0;
    for (const auto& [begin, end] : live_) {
      if (offset + taken <= begin) break;
      offset = end;
    }
    live_[offset] = offset + taken;
    bytes_ = std::max(bytes_, offset + taken);
    places_.push_back({offset, bytes});
    return places_.size() - 1;
  }
  // Its release.
  void remove(size_t number) { live_.erase(places_[number].offset); }

  size_t bytes() const { return bytes_; }  // of the block
  const std::vector<Place>& places() const { return places_; }
  bool is_empty() const { return live_.empty(); }

 private:
  std::vector<Place> places_;
  std::map<size_t, size_t> live_;  // ends of what is in use, by offset
  size_t bytes_ = 0;
};

}  // namespace octet
