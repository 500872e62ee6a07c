// octet map --predict: what cards that are not here would do.
#pragma once

#include <string>
#include <vector>

#include "flags.h"

namespace octet::cli {

struct PredictArguments {
  std::vector<std::string> cards;  // or "all" among them
  std::string shapes;  // sizes of the model, as --shapes has them; empty: the usual ones
  int text_tokens = 512;
  std::string svg;     // a file; empty: none
  bool check = false;  // also predict what was measured, without having seen it
};

void show_prediction(const CommonFlags& flags, const PredictArguments& arguments);

}  // namespace octet::cli
