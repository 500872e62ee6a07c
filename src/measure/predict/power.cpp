#include "measure/predict/power.h"

#include <algorithm>
#include <cmath>

namespace octet::predict {

double clock_share(const Card& card, const Coefficients& coefficients, Load load, double joules,
                   double seconds) {
  if (seconds <= 0) return 1;
  const double limit = load == Load::cold ? coefficients.cold_power : 1.0;
  const double allowed = (limit - kConstantPower) * card.watts;
  return std::min(1.0, std::cbrt(allowed / (joules / seconds)));
}

}  // namespace octet::predict
