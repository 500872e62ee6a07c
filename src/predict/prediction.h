// What the public functions of octet/predict.h answer.
#pragma once

#include "octet/predict.h"
#include "predict/card.h"

namespace octet::predict {

CardPrediction prediction_of(const Card& card, const std::vector<int>& sizes, int text_tokens);

std::vector<PredictedMemory> memory_of(const std::vector<int>& sizes);

LeaveOneOut held_out_summary();

}  // namespace octet::predict
