#include "measure/compare/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "measure/compare/difference.h"

namespace octet::measure {
namespace {

struct GroupSum {
  double sum = 0;
  int count = 0;
};

std::vector<GroupSum> finite_sums(const Groups& groups) {
  std::vector<GroupSum> sums;
  for (const std::vector<double>& group : groups) {
    GroupSum of_group;
    for (const double value : group) {
      if (!std::isfinite(value)) continue;
      of_group.sum += value;
      ++of_group.count;
    }
    if (of_group.count > 0) sums.push_back(of_group);
  }
  return sums;
}

// Numbers below `bound`, the same on every machine: a counter through a mixer.
class Draws {
 public:
  explicit Draws(uint64_t bound) : bound_(bound) {}
  size_t next() {
    const uint64_t bits = mixed_bits(++counter_ * kHashFactor) >> 32;
    return static_cast<size_t>(bits * bound_ >> 32);
  }

 private:
  uint64_t bound_, counter_ = 0;
};

// Between the two nearest of sorted numbers, linearly.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Interval bootstrap_mean(const Groups& groups) {
  const std::vector<GroupSum> sums = finite_sums(groups);
  if (sums.size() < 2) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {kNone, kNone};
  }
  Draws draws(sums.size());
  std::vector<double> means;
  for (int resample = 0; resample < kResamples; ++resample) {
    GroupSum drawn;
    for (size_t i = 0; i < sums.size(); ++i) {
      const GroupSum& group = sums[draws.next()];
      drawn.sum += group.sum;
      drawn.count += group.count;
    }
    means.push_back(drawn.sum / drawn.count);
  }
  std::sort(means.begin(), means.end());
  constexpr double kTail = (1 - kConfidence) / 2;
  return {quantile(means, kTail), quantile(means, 1 - kTail)};
}

Statistic grouped_statistic(const Groups& groups) {
  std::vector<double> all;
  for (const std::vector<double>& group : groups) all.insert(all.end(), group.begin(), group.end());
  Statistic made = statistic(all);
  std::erase_if(all, [](double value) { return !std::isfinite(value); });
  if (!all.empty()) {
    std::sort(all.begin(), all.end());
    made.median = quantile(all, 0.5);
  }
  const Interval interval = bootstrap_mean(groups);
  made.low = interval.low;
  made.high = interval.high;
  return made;
}

}  // namespace octet::measure
