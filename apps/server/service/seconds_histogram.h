// How many of a kind took how long, for Prometheus: percentiles over any time, and any number of
// servers, come from such counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace octet::server {

struct SecondsHistogram {
  // From a picture of the small model to the longest job that a server usually allows.
  static constexpr std::array<double, 13> kBounds = {0.1, 0.25, 0.5, 1,   2.5, 5,  10,
                                                     20,  40,   80,  160, 320, 640};
  std::array<uint64_t, kBounds.size() + 1> counts{};  // up to each bound, and beyond the last
  double sum = 0;

  void add(double seconds) {
    const auto bound = std::ranges::lower_bound(kBounds, seconds);
    ++counts[static_cast<size_t>(bound - kBounds.begin())];
    sum += seconds;
  }
};

}  // namespace octet::server
