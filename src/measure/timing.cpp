#include "measure/timing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/gemm_tuning.h"
#include "backend/host_backend.h"
#include "base/stopwatch.h"

namespace octet::measure {
namespace {

double median_of(const std::function<double()>& measured) {
  constexpr int kRepeats = 7;
  std::vector<double> values;
  for (int i = 0; i < kRepeats; ++i) values.push_back(measured());
  return timing_of(std::move(values)).median;
}

}  // namespace

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Timing timing_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  Timing timing;
  timing.rounds = values.size();
  timing.median = quantile(values, 0.5);
  const double range = quantile(values, 0.75) - quantile(values, 0.25);
  if (timing.median > 0) timing.spread = range / timing.median;
  return timing;
}

std::vector<Timing> time_in_turns(Backend& backend, const std::vector<std::function<void()>>& works,
                                  double seconds, int min_rounds,
                                  const std::function<void()>& after_round) {
  GemmTuning& clock = backend.tuning();
  for (const auto& work : works) clock.time_us(work);
  std::vector<std::vector<double>> times(works.size());
  const Stopwatch watch;
  for (int round = 0; round < min_rounds || watch.microseconds() < seconds * 1e6; ++round) {
    for (size_t turn = 0; turn < works.size(); ++turn) {
      const size_t index = round % 2 == 0 ? turn : works.size() - 1 - turn;
      times[index].push_back(clock.time_us(works[index]));
    }
    if (after_round) after_round();
  }
  std::vector<Timing> timings;
  for (auto& values : times) timings.push_back(timing_of(std::move(values)));
  return timings;
}

Ceilings measure_ceilings(Backend& backend) {
  constexpr size_t kDeviceBytes = size_t{256} << 20, kHostBytes = size_t{64} << 20;
  GemmTuning& tuning = backend.tuning();
  Ceilings ceilings;
  ceilings.int8 = median_of([&] { return tuning.int8_ceiling(); });
  ceilings.bf16 = median_of([&] { return tuning.bf16_ceiling(); });
  const Buffer from = backend.allocate(keeps_data_on_host(backend) ? kHostBytes : kDeviceBytes);
  const Buffer to = backend.allocate(from.bytes());
  const auto copy = [&] { backend.copy(to.data(), from.data(), from.bytes()); };
  copy();  // a host's pages are there after this
  const double us = median_of([&] { return tuning.time_us(copy); });
  ceilings.copy = us > 0 ? 2.0 * static_cast<double>(from.bytes()) / us * 1e6 : 0;
  return ceilings;
}

double ceiling_share(const OpWork& work, double us, DType dtype, const Ceilings& ceilings) {
  const double floating = work.operations - work.int8_operations;
  const double bf16 = dtype == DType::bf16 ? ceilings.bf16 : 0;
  double products = 0;  // seconds
  for (const auto& [operations, speed] :
       {std::pair(work.int8_operations, ceilings.int8), std::pair(floating, bf16)}) {
    if (operations <= 0) continue;
    if (speed <= 0) return 0;
    products += operations / speed;
  }
  const double moving = ceilings.copy > 0 ? work.bytes / ceilings.copy : 0;
  return us > 0 ? std::max(products, moving) / (us * 1e-6) : 0;
}

}  // namespace octet::measure
