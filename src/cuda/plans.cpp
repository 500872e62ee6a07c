#include "cuda/plans.h"

namespace octet::cuda {

tune::PlanHeader plan_header(const DeviceTraits& traits) {
  tune::PlanHeader header;
  header.device = traits.name;
  header.multiprocessors = traits.multiprocessors;
  header.driver = traits.driver;
  header.toolkit = traits.toolkit;
  header.library = OCTET_VERSION;
  return header;
}

tune::Planner make_planner(const DeviceTraits& traits, tune::TuneMode mode, bool refines) {
  const tune::PlanHeader header = plan_header(traits);
  // A picture does not wait for another process to write its plans.
  const auto patience = refines ? std::chrono::milliseconds(100) : tune::PlanCache::kLockPatience;
  return tune::Planner(
      tune::PlanCache(tune::default_plan_path(header), header, patience), mode, {},
      tune::ShippedPlans(tune::shipped_cards(), traits.name, traits.multiprocessors));
}

}  // namespace octet::cuda
