// The clock that a card's power limit leaves.
#pragma once

#include "measure/predict/model.h"

namespace octet::predict {

// Of the limit: what a card draws that does not follow its clock. An estimate.
inline constexpr double kConstantPower = 0.2;

// Picojoules per byte from L2 to a multiprocessor. An estimate.
inline constexpr double kFetchPj = 10;

// Share of the boost clock, at most 1, for work of `joules` that takes `seconds` at that clock.
double clock_share(const Card& card, const Coefficients& coefficients, Load load, double joules,
                   double seconds);

}  // namespace octet::predict
