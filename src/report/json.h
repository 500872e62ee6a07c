// What the JSON documents of results share.
#pragma once

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
Json known(double value);
Json known(const std::string& text);

// JSON has no infinity and no NaN.
Json finite(double value);

// Null where nothing reported it.
Json json_of(const PowerUse& power);

// The two fields of a row of figures.
void add_steadiness(Json& row, const Steadiness& steadiness);

template <class Entry>
Json list_of(const std::vector<Entry>& entries, Json (*json_of_each)(const Entry&)) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(json_of_each(entry));
  return list;
}

}  // namespace octet::report
