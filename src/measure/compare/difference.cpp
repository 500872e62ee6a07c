#include "measure/compare/difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "measure/timing.h"

namespace octet::measure {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPeak = 255;
constexpr int kChannels = 3;

void check_pair(const PixelView& a, const PixelView& b) {
  check(a.width == b.width && a.height == b.height,
        "pictures of {} x {} and of {} x {} cannot be compared, expected one size", a.width,
        a.height, b.width, b.height);
  const auto bytes = static_cast<size_t>(a.width) * static_cast<size_t>(a.height) * kChannels;
  check(bytes > 0 && a.rgb.size() == bytes && b.rgb.size() == bytes,
        "pictures of {} x {} have {} and {} bytes, expected {}", a.width, a.height, a.rgb.size(),
        b.rgb.size(), bytes);
}

using Window = std::array<double, kSsimWindow>;

Window gaussian_window() {
  constexpr double kSigma = 1.5;
  Window window;
  double sum = 0;
  for (int i = 0; i < kSsimWindow; ++i) {
    const double x = (i - kSsimWindow / 2) / kSigma;
    sum += window[static_cast<size_t>(i)] = std::exp(-0.5 * x * x);
  }
  for (double& weight : window) weight /= sum;
  return window;
}

// Weighted means under a window: of x, y, x^2, y^2 and xy.
struct Moments {
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double weight, const Moments& other) {
    x += weight * other.x;
    y += weight * other.y;
    xx += weight * other.xx;
    yy += weight * other.yy;
    xy += weight * other.xy;
  }

  double similarity() const {
    constexpr double kC1 = (0.01 * kPeak) * (0.01 * kPeak), kC2 = (0.03 * kPeak) * (0.03 * kPeak);
    const double variance_x = xx - x * x, variance_y = yy - y * y, covariance = xy - x * y;
    return (2 * x * y + kC1) * (2 * covariance + kC2) /
           ((x * x + y * y + kC1) * (variance_x + variance_y + kC2));
  }
};

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

}  // namespace

Difference difference(std::span<const float> reference, std::span<const float> candidate) {
  check(reference.size() == candidate.size(),
        "{} and {} numbers cannot be compared, expected equal counts", reference.size(),
        candidate.size());
  double aa = 0, bb = 0, ab = 0, apart = 0, largest = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i], b = candidate[i], d = b - a;
    aa += a * a;
    bb += b * b;
    ab += a * b;
    apart += d * d;
    largest = std::max(largest, std::abs(d));
  }
  if (apart == 0) return {1, 0, kInfinity, 0};
  // The root of the product, so that vectors that differ only by a power of two give exactly 1.
  const double norms = std::sqrt(aa * bb);
  const double cosine = norms > 0 ? std::clamp(ab / norms, -1.0, 1.0) : 0;
  return {cosine, std::sqrt(apart / aa), 10 * std::log10(aa / apart), largest};
}

Statistic statistic(std::span<const double> values) {
  double sum = 0;
  int count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  if (count == 0) return {.mean = kNaN, .standard_error = kNaN};
  const double mean = sum / count;
  if (count == 1) return {.mean = mean, .standard_error = kNaN, .count = 1};
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - mean) * (value - mean);
  }
  return {
      .mean = mean, .standard_error = std::sqrt(squares / (count - 1.0) / count), .count = count};
}

double psnr_db(const PixelView& reference, const PixelView& candidate) {
  check_pair(reference, candidate);
  double apart = 0;
  for (size_t i = 0; i < reference.rgb.size(); ++i) {
    const double d = static_cast<double>(candidate.rgb[i]) - reference.rgb[i];
    apart += d * d;
  }
  if (apart == 0) return kInfinity;
  return 10 * std::log10(kPeak * kPeak / (apart / static_cast<double>(reference.rgb.size())));
}

// The window is a product of two, so rows are summed under it first, then columns.
double ssim(const PixelView& reference, const PixelView& candidate) {
  check_pair(reference, candidate);
  const int rows = reference.height - kSsimWindow + 1, columns = reference.width - kSsimWindow + 1;
  if (rows < 1 || columns < 1) return kNaN;
  const Window window = gaussian_window();
  const auto width = static_cast<size_t>(reference.width);
  std::vector<Moments> sums(width * kChannels);
  double sum = 0;
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    std::fill(sums.begin(), sums.end(), Moments());
    for (size_t i = 0; i < kSsimWindow; ++i) {
      const size_t first = (row + i) * width * kChannels;
      for (size_t at = 0; at < sums.size(); ++at) {
        const double x = reference.rgb[first + at], y = candidate.rgb[first + at];
        sums[at].add(window[i], {x, y, x * x, y * y, x * y});
      }
    }
    for (size_t at = 0; at < static_cast<size_t>(columns) * kChannels; ++at) {
      Moments moments;
      for (size_t i = 0; i < kSsimWindow; ++i) moments.add(window[i], sums[at + i * kChannels]);
      sum += moments.similarity();
    }
  }
  return sum / (static_cast<double>(rows) * columns * kChannels);
}

Interval bootstrap_mean(const Groups& groups) {
  const std::vector<GroupSum> sums = finite_sums(groups);
  if (sums.size() < 2) return {kNaN, kNaN};
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
