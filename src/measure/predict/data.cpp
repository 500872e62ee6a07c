#include "measure/predict/data.h"

#include "cards_text.h"
#include "formats/json.h"
#include "measured_h200_text.h"
#include "public_figures_text.h"

namespace octet::predict {

const nlohmann::json& cards_data() {
  static const nlohmann::json data = parse_json(kCardsText, "cards.json");
  return data;
}

const nlohmann::json& measured_data() {
  static const nlohmann::json data = parse_json(kMeasuredH200Text, "measured_h200.json");
  return data;
}

const nlohmann::json& public_figures_data() {
  static const nlohmann::json data = parse_json(kPublicFiguresText, "public_figures.json");
  return data;
}

}  // namespace octet::predict
