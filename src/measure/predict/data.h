// The data files of this layer, as they were when the library was built.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace octet::predict {

const nlohmann::json& cards_data();           // cards.json
const nlohmann::json& measured_data();        // measured_h200.json
const nlohmann::json& public_figures_data();  // public_figures.json

}  // namespace octet::predict
