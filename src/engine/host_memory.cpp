#include "engine/host_memory.h"

#include <algorithm>

#include "base/free_memory.h"
#include "weights/weight_upload.h"

namespace octet::engine {
namespace {

// At 1024 px 430 MB were measured, at 256 px 240; a small model takes far less.
constexpr uint64_t kMostOfProcess = uint64_t{512} << 20;
constexpr uint64_t kShare = 5;  // of what is free, or less

}  // namespace

uint64_t free_for_model(uint64_t free) { return free - std::min(free / kShare, kMostOfProcess); }

// Rows as stored, and codes that are made of them.
uint64_t loading_bytes(const std::vector<PartNeed>& parts) {
  uint64_t largest = 0;
  for (const PartNeed& part : parts) largest = std::max(largest, part.largest_unit());
  return 2 * std::min(largest, weights::kMostLandingOnHost);
}

void check_host_memory(const DevicePlan& plan, uint64_t free) {
  const uint64_t needed = std::max(plan.taken, plan.least);
  if (needed <= free) return;
  const uint64_t beside = std::min(needed / (kShare - 1), kMostOfProcess);
  check_free_memory("denoising", static_cast<double>(needed + beside),
                    sentence("use a smaller `size`, or leave `keep` out"));
}

}  // namespace octet::engine
