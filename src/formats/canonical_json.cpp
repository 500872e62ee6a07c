#include "formats/canonical_json.h"

#include <fmt/format.h>

#include <cmath>

namespace octet {
namespace {

// nlohmann's own digits are not always the fewest.
std::string shortest_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";  // no integer
  return text;
}

}  // namespace

std::string canonical_json(const nlohmann::json& value) {
  if (value.is_number_float()) return shortest_number(value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, entry] : value.items()) {
    if (!text.empty()) text += ',';
    if (value.is_object()) text += nlohmann::json(key).dump() + ':';
    text += canonical_json(entry);
  }
  return value.is_object() ? '{' + text + '}' : '[' + text + ']';
}

}  // namespace octet
