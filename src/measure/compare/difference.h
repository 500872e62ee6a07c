// How far numbers and pictures are apart, summed in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/pixels.h"
#include "octet/tools/difference.h"

namespace octet::measure {

// Of as many elements, all finite.
Difference difference(std::span<const float> reference, std::span<const float> candidate);

// The mean and its standard error, that of independent measurements: sqrt(variance / count), the
// variance with count - 1. grouped_statistic() has the rest.
Statistic statistic(std::span<const double> values);

using engine::PixelView;  // of one size

// 10 log10(255^2 / mean square difference of all channels); infinite when they are equal.
double psnr_db(const PixelView& reference, const PixelView& candidate);

// Structural similarity as octet/compare.h describes it; NaN for a side under kSsimWindow pixels.
inline constexpr int kSsimWindow = 11;
double ssim(const PixelView& reference, const PixelView& candidate);

// --- how far the mean of measurements would move with other captions: the bootstrap

inline constexpr int kResamples = 2000;
inline constexpr double kConfidence = 0.95;

// The numbers of one caption: pictures of several seeds, which stay together.
using Groups = std::vector<std::vector<double>>;

struct Interval {
  double low = 0, high = 0;
};

// The percentile interval of the mean over all numbers. Groups are drawn with replacement, always
// by the same draws for as many groups: intervals of several measurements are those of the same
// captions. Numbers that are not finite have no part; NaN where fewer than two groups have one.
Interval bootstrap_mean(const Groups& groups);

// All of a Statistic.
Statistic grouped_statistic(const Groups& groups);

}  // namespace octet::measure
