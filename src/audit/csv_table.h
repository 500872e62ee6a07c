// Tables of profilers: columns by name, numbers with units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octet::audit {

class CsvHeader {
 public:
  CsvHeader() = default;
  explicit CsvHeader(std::vector<std::string> cells) : cells_(std::move(cells)) {}

  static constexpr size_t kNoColumn = static_cast<size_t>(-1);
  // "Duration" finds "Duration", "Duration (ns)", "Duration(us)" and "Duration:dur_ns".
  size_t column(std::string_view name) const;
  bool has(std::string_view name) const { return column(name) != kNoColumn; }
  // What is in parentheses after a column's name.
  std::string_view unit(size_t column) const;
  size_t size() const { return cells_.size(); }
  const std::vector<std::string>& cells() const { return cells_; }

 private:
  std::vector<std::string> cells_;
};

// Of a row; empty where there is no such column, or the row is shorter.
std::string_view cell_of(const std::vector<std::string>& row, size_t column);

// Microseconds in one "ns", "nsecond", "usecond", "ms", "s", ...; 0 for other units.
double us_per(std::string_view unit);

// A number of a table that is at least 0, finite and below 1e18; else 0.
double csv_amount(std::string_view cell);

// The product of the numbers in "(128, 1, 1)", "256 x 1 x 1" or "  32   1   1"; 0 where there are
// none.
uint64_t product_of(std::string_view text);

}  // namespace octet::audit
