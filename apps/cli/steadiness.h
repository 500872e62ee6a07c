// Figures of a busy machine, marked as such in tables and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "octet/tools/bench.h"

namespace octet::cli {

// A table's figure; "~1284" where it is not reliable.
inline std::string marked(const std::string& figure, const Steadiness& steadiness) {
  return steadiness.reliable || figure == "-" ? figure : "~" + figure;
}

// The line below a table that has such figures.
inline constexpr const char* kUnreliableLine =
    "~ is not reliable: its rounds disagree or are fewer than 3, or it exceeds the peak. Run it "
    "again\non an idle machine.\n";

template <class Rows>
std::string unreliable_line(const Rows& rows) {
  for (const auto& row : rows) {
    if (!row.steadiness.reliable) return kUnreliableLine;
  }
  return "";
}

// The two fields of a row's JSON.
inline void add_steadiness(nlohmann::ordered_json& row, const Steadiness& steadiness) {
  row["spread"] = steadiness.spread;
  row["reliable"] = steadiness.reliable;
}

}  // namespace octet::cli
