// Fits the model to the measured card.
//
// Least squares of the logarithms of predicted over measured times, one coefficient after the
// other, in rounds until they settle: each of them has a single best value given the others. No
// step is ever fitted to.
#pragma once

#include "measure/predict/measured.h"

namespace octet::predict {

Coefficients fit(const Card& card, const Measured& measured);

// fit() to everything in measured_h200.json, made once.
const Coefficients& calibrated();

// A figure of the measured card, predicted by coefficients that were fitted without any figure of
// its shape (linears: same m, n and k; attention: as many tokens), or without steps. The two times
// of the quantization alone, which INT8 linears of 4096 rows have in them, stay in.
struct HeldOut {
  enum class Kind { linear, attention, step, part };  // part: of a step

  Kind kind = Kind::linear;
  std::string what;  // "int8 4096 x 13824 x 4608, cold"
  double measured = 0, predicted = 0;
  const char* unit = "us";
  double error() const { return measured > 0 ? predicted / measured - 1 : 0; }
};

std::vector<HeldOut> hold_out_each();

}  // namespace octet::predict
