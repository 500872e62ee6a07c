// What the JSON documents of results share.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "octet/tools/power_use.h"
#include "octet/tools/steadiness.h"

namespace octet::report {

using Json = nlohmann::ordered_json;

// The text of a result: its schema, "octet.bench.gemm/1", and then its fields. The number rises
// when a field changes its meaning or goes; a new field leaves it as it is.
std::string document(const char* schema, const Json& fields);

// As text; names of files need not be UTF-8, and JSON must be.
std::string valid_text(const Json& json, int indent);

// Null for what was not measured or is not known.
Json known(const std::string& text);
template <class Number>
Json known(Number value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

// JSON has no infinity and no NaN.
Json finite(double value);

// Null where nothing reported it.
Json json_of(const PowerUse& power);

Json json_of(const Steadiness& steadiness);

// The fields of objects as one object, in this order.
Json joined(std::initializer_list<Json> objects);

// Fields with the names of their members: OCTET_FIELDS(row, m, n) is {"m": row.m, "n": row.n}.
// OCTET_KNOWN_FIELDS gives known() of each.
#define OCTET_FIELD(member) {#member, of.member},
#define OCTET_KNOWN_FIELD(member) {#member, report::known(of.member)},
#define OCTET_OBJECT(field, value, ...)                                                           \
  [](const auto& of) {                                                                            \
    return report::Json::object({NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(field, __VA_ARGS__))}); \
  }(value)
#define OCTET_FIELDS(value, ...) OCTET_OBJECT(OCTET_FIELD, value, __VA_ARGS__)
#define OCTET_KNOWN_FIELDS(value, ...) OCTET_OBJECT(OCTET_KNOWN_FIELD, value, __VA_ARGS__)

template <class Entry>
Json list_of(const std::vector<Entry>& entries, Json (*json_of_each)(const Entry&)) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(json_of_each(entry));
  return list;
}

}  // namespace octet::report
