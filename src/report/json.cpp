#include "report/json.h"

#include <cmath>

namespace octet::report {

std::string document(const char* schema, const Json& fields) {
  Json json = {{"schema", schema}};
  json.update(fields);
  return valid_text(json, 2) + "\n";
}

std::string valid_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json known(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const PowerUse& power) {
  if (!power.is_known()) return nullptr;
  return {{"samples", power.samples},
          {"mean_w", known(power.mean_w)},
          {"max_w", known(power.max_w)},
          {"limit_w", known(power.limit_w)},
          {"joules", known(power.joules)},
          {"mean_mhz", known(power.mean_mhz)},
          {"max_celsius", known(power.max_celsius)},
          {"power_capped", power.power_capped},
          {"too_hot", power.too_hot}};
}

void add_steadiness(Json& row, const Steadiness& steadiness) {
  row["spread"] = steadiness.spread;
  row["reliable"] = steadiness.reliable;
}

}  // namespace octet::report
