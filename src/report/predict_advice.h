// What follows from predictions for cards, in sentences.
#pragma once

#include <string>
#include <vector>

#include "octet/tools/report.h"

namespace octet::report {

// "Use INT8 on rtx3090 (steps 2.1 to 2.5 times as fast as bf16); bf16 on b200." Of Octet's own
// paths; a card on which other programs' FP8 is faster is told so. Empty where none runs it.
std::string advice_text(const std::vector<CardPrediction>& cards);

// A line for each card that Octet does not run on.
std::string not_run_text(const std::vector<CardPrediction>& cards);

// A line for each card that does not hold both networks in INT8, and how long its steps take then.
std::string bus_text(const Prediction& prediction);

// A line for each card that Octet runs on: the shortest form of its prediction.
std::string card_lines(const Prediction& prediction);

}  // namespace octet::report
