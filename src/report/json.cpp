#include "report/json.h"

namespace octet::report {

std::string document(const char* schema, const Json& fields) {
  return valid_text(joined({field("schema", schema), fields}), 2) + "\n";
}

std::string valid_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json field(const char* name, const Json& value) { return {{name, value}}; }

Json joined(std::initializer_list<Json> objects) {
  Json all = Json::object();
  for (const Json& object : objects) all.update(object);
  return all;
}

}  // namespace octet::report

namespace octet {

void to_json(report::Json& json, const PowerUse& power) {
  json = nullptr;
  if (!power.is_known()) return;
  json = report::joined(
      {OCTET_FIELDS(power, samples),
       OCTET_KNOWN_FIELDS(power, mean_w, max_w, limit_w, joules, mean_mhz, max_celsius),
       OCTET_FIELDS(power, power_capped, too_hot)});
}

void to_json(report::Json& json, const Steadiness& steadiness) {
  json = OCTET_FIELDS(steadiness, spread, reliable);
}

}  // namespace octet
