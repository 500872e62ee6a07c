// How far the mean of measurements would move with other captions: the bootstrap.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/tools/difference.h"

namespace octet::measure {

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
