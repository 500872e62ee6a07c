#include "measure/power_meter.h"

#include <algorithm>
#include <chrono>

#include "backend/gemm_tuning.h"
#include "base/error.h"
#include "base/log.h"
#include "base/start_threads.h"

namespace octet::measure {
namespace {

constexpr auto kBetweenSamples = std::chrono::milliseconds(50);

std::unique_ptr<PowerGauge> gauge_of(Backend& backend) {
  try {
    return backend.tuning().power_gauge();
  } catch (const Error& error) {
    log::warning("power and clock are not measured: {}", error.sentence());
    return nullptr;
  }
}

}  // namespace

PowerMeter::PowerMeter(Backend& backend) : PowerMeter(gauge_of(backend)) {}

void PowerMeter::start() {
  if (gauge_ == nullptr) return;
  end_sampling();
  readings_.clear();
  ends_ = false;
  watch_ = {};
  joules_ = gauge_->joules();
  auto started = start_threads(1, [this] { sample(); });
  if (!started.empty()) thread_ = std::move(started.front());
}

void PowerMeter::sample() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    const PowerReading reading = gauge_->read();
    lock.lock();
    readings_.push_back(reading);
  } while (!wake_.wait_for(lock, kBetweenSamples, [this] { return ends_; }));
}

void PowerMeter::end_sampling() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

PowerUse PowerMeter::stop() {
  if (gauge_ == nullptr) return {};
  const double seconds = watch_.microseconds() * 1e-6, joules = gauge_->joules();
  end_sampling();
  PowerUse use;
  use.samples = static_cast<int>(readings_.size());
  use.limit_w = gauge_->limit_watts();
  if (readings_.empty()) return use;
  const double each = 1.0 / static_cast<double>(readings_.size());
  for (const PowerReading& reading : readings_) {
    use.mean_w += each * reading.watts;
    use.max_w = std::max(use.max_w, reading.watts);
    use.mean_mhz += each * reading.mhz;
    use.max_celsius = std::max(use.max_celsius, reading.celsius);
    if (reading.power_capped) use.power_capped += each;
    if (reading.too_hot) use.too_hot += each;
  }
  if (joules > joules_ && joules_ > 0 && seconds >= counted_from_s_) {
    use.joules = joules - joules_;
    use.mean_w = use.joules / seconds;
  } else {
    use.joules = use.mean_w * seconds;
  }
  return use;
}

}  // namespace octet::measure
