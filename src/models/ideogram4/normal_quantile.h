// The quantile of the standard normal distribution.
#pragma once

namespace octet::ideogram4 {

// x with P(X <= x) = probability, to about an ulp of double; -infinity at 0, infinity at 1, NaN
// outside of [0, 1].
double normal_quantile(double probability);

}  // namespace octet::ideogram4
