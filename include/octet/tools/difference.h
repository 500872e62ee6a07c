// How far tensors and pictures are from a reference.
#pragma once

#include <limits>

namespace octet {

// Of a candidate b from its reference a. Infinite values are IEEE 754 infinities.
struct Difference {
  double cosine = 1;         // of the angle between them; 0 if only one of them is zero
  double relative_rmse = 0;  // |b - a| / |a|; infinite if only a is zero
  double snr_db = 0;         // 20 log10(|a| / |b - a|); infinite if they are equal
  double max_abs = 0;        // the largest |b - a| of any element
};

// Over several measurements. Infinite ones are left out: equal data, or a reference of zeros.
struct Statistic {
  double mean = 0;                                           // NaN if none counts
  double standard_error = 0;                                 // of the mean; NaN for fewer than two
  int count = 0;                                             // of those that count
  double median = std::numeric_limits<double>::quiet_NaN();  // NaN if none counts
  // The mean's 95 % interval: a bootstrap over captions, each with all its pictures, 2000 times.
  // NaN for fewer than two captions.
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace octet
