// How far tensors and pictures are from a reference.
#pragma once

#include <limits>

namespace octet {

// Of a candidate b from its reference a. The infinite values are those of IEEE 754.
struct Difference {
  double cosine = 1;         // of the angle between them; 0 when one of them alone is zero
  double relative_rmse = 0;  // |b - a| / |a|; infinite when a alone is zero
  double snr_db = 0;         // 20 log10(|a| / |b - a|); infinite when they are equal
  double max_abs = 0;        // the largest |b - a| of all elements
};

// Over several measurements. Infinite ones have no part in it: equal data, or a reference of zeros.
struct Statistic {
  double mean = 0;                                           // NaN when none had part
  double standard_error = 0;                                 // of the mean; NaN for fewer than two
  int count = 0;                                             // that had part
  double median = std::numeric_limits<double>::quiet_NaN();  // NaN when none had part
  // The mean's 95 % interval: captions are drawn anew, with all of their pictures, 2000 times. NaN
  // for fewer than two captions.
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace octet
