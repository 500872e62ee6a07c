// Where the allocations of a piece of work lie in one block of memory: when the work runs again,
// and allocates in the same order, each gets the place that it had, and nothing is allocated.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace octet {

class MemoryPlan {
 public:
  struct Place {
    size_t offset = 0;
    size_t bytes = 0;  // that were asked for
  };

  // The next allocation: the lowest place that is free meanwhile. Returns its number.
  size_t add(size_t bytes);
  // Its release.
  void remove(size_t number);

  size_t bytes() const { return bytes_; }  // of the block
  const std::vector<Place>& places() const { return places_; }
  bool is_empty() const { return live_.empty(); }

 private:
  std::vector<Place> places_;
  std::map<size_t, size_t> live_;  // ends of what is in use, by offset
  size_t bytes_ = 0;
};

}  // namespace octet
