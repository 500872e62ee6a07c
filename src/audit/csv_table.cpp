#include "audit/csv_table.h"

#include <charconv>

#include "base/checked.h"
#include "formats/csv.h"

namespace octet::audit {

size_t CsvHeader::column(std::string_view name) const {
  for (size_t i = 0; i < cells_.size(); ++i) {
    std::string_view cell = cells_[i];
    if (!cell.starts_with(name)) continue;
    cell.remove_prefix(name.size());
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    if (cell.empty() || cell.starts_with('(') || cell.starts_with(':')) return i;
  }
  return kNoColumn;
}

std::string_view CsvHeader::unit(size_t column) const {
  const std::string_view cell = cells_[column];
  const size_t open = cell.rfind('('), close = cell.rfind(')');
  if (open == cell.npos || close == cell.npos || close < open) return {};
  return cell.substr(open + 1, close - open - 1);
}

std::string_view cell_of(const std::vector<std::string>& row, size_t column) {
  return column < row.size() ? std::string_view(row[column]) : std::string_view();
}

double us_per(std::string_view unit) {
  if (unit == "ns" || unit == "nsecond" || unit == "nsec") return 1e-3;
  if (unit == "us" || unit == "usecond" || unit == "usec" || unit == "\u00B5s") return 1;
  if (unit == "ms" || unit == "msecond" || unit == "msec") return 1e3;
  if (unit == "s" || unit == "second" || unit == "sec") return 1e6;
  return 0;
}

double csv_amount(std::string_view cell) {
  const double value = csv_number(cell);
  return value >= 0 && value < 1e18 ? value : 0;
}

uint64_t product_of(std::string_view text) {
  uint64_t product = 1;
  bool has_number = false;
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    uint64_t factor = 0;
    const auto [stop, error] = std::from_chars(at, end, factor);
    if (stop == at) {
      ++at;
      continue;
    }
    const auto next = checked_mul(product, factor);
    if (error != std::errc() || !next) return 0;
    product = *next;
    has_number = true;
    at = stop;
  }
  return has_number ? product : 0;
}

}  // namespace octet::audit
