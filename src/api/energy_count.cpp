#include "api/energy_count.h"

#include <algorithm>
#include <utility>

#include "backend/gemm_tuning.h"
#include "base/log.h"

namespace octet::api {

std::unique_ptr<PowerGauge> gauge_of(Backend& backend) {
  try {
    return backend.tuning().power_gauge();
  } catch (const Error& error) {
    log::debug("energy is not counted: {}", error.sentence());
    return nullptr;
  }
}

EnergyCount::EnergyCount(std::unique_ptr<PowerGauge> gauge)
    : gauge_(std::move(gauge)), begin_(counted()) {}

double EnergyCount::counted() noexcept {
  try {
    return gauge_ != nullptr ? gauge_->joules() : 0;
  } catch (...) {  // a device without a counter
    return 0;
  }
}

double EnergyCount::joules() {
  const std::lock_guard lock(mutex_);
  return begin_ > 0 ? std::max(counted() - begin_, 0.0) : 0;
}

}  // namespace octet::api
