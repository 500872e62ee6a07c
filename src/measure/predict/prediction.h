// What the public functions of octet/predict.h answer.
#pragma once

#include "measure/predict/card.h"
#include "octet/tools/predict.h"

namespace octet::predict {

CardPrediction prediction_of(const Card& card, const std::vector<int>& sizes, int text_tokens);

std::vector<PredictedMemory> memory_of(const std::vector<int>& sizes);

LeaveOneOut held_out_summary();

}  // namespace octet::predict
