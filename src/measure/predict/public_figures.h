// Figures that others published, beside what the model says: public_figures.json.
#pragma once

#include <vector>

#include "octet/tools/predict.h"

namespace octet::predict {

std::vector<PublicFigure> public_figures();

}  // namespace octet::predict
