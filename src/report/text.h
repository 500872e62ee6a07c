// What the texts of results share: tables and figures.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "octet/tools/compare.h"
#include "octet/tools/power_use.h"
#include "octet/tools/steadiness.h"
#include "octet/tools/text.h"

namespace octet::report {

// Columns as wide as their longest cell; the first `left` columns are aligned left, the rest right.
class Table {
 public:
  Table(std::vector<std::string> header, size_t left);
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_;
};

// A bar of a chart in text; a share of 1 is its full length, and nothing is too short to be seen.
std::string bar(double share);

// A measured number for a table, never rounded to nothing: "0.042", "9.42", "41.9", "1284"; "-" for
// 0, which means that it was not measured.
std::string short_number(double value);
std::string short_percent(double share);  // "0.42 %", "87 %"

// Speeds in the unit that suits the fastest that was seen: TOPS, or GOPS for slow devices.
class Speeds {
 public:
  void see(double tops) { large_ = large_ || tops >= 10; }
  std::string unit() const { return large_ ? "TOPS" : "GOPS"; }
  std::string operator()(double tops) const { return short_number(large_ ? tops : tops * 1e3); }

 private:
  bool large_ = false;
};

// The entry of `list` to which `further` is to be added; none where it has become a new one.
template <class Entry, class Key>
Entry* same_in(std::vector<Entry>& list, const Entry& further, Key key) {
  for (Entry& each : list) {
    if (std::invoke(key, each) == std::invoke(key, further)) return &each;
  }
  list.push_back(further);
  return nullptr;
}

// "31.20 to 34.51"; `none` where the statistic has no interval.
std::string interval_of(const Statistic& statistic, int decimals, const char* none = "-");

// What a device drew, "612 W of at most 700 ...", a line; nothing where it is unknown.
std::string power_line(const PowerUse& power);

// A table's figure; "~1284" where the machine was too busy for it to be reliable.
std::string marked(const std::string& figure, const Steadiness& steadiness);

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

}  // namespace octet::report
