#include "backend/memory_plan.h"

#include <algorithm>

namespace octet {
namespace {

// As aligned as any backend's own memory, and at least so far apart: a view of no elements still
// wants an address of its own.
constexpr size_t kPlaceBytes = 256;

}  // namespace

size_t MemoryPlan::add(size_t bytes) {
  const size_t taken = std::max((bytes + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes, kPlaceBytes);
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

void MemoryPlan::remove(size_t number) { live_.erase(places_[number].offset); }

}  // namespace octet
