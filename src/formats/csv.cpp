#include "formats/csv.h"

#include <charconv>
#include <limits>

namespace octet {

std::vector<std::string> split_csv(std::string_view line) {
  std::vector<std::string> cells;
  size_t at = 0;
  while (cells.size() < kMaxCsvCells) {
    std::string& cell = cells.emplace_back();
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size(); ++at) {
        if (line[at] == '"' && (++at == line.size() || line[at] != '"')) break;
        cell += line[at];
      }
    }
    const size_t comma = line.find(',', at);
    cell += line.substr(at, comma - at);
    if (comma == line.npos) break;
    at = comma + 1;
  }
  return cells;
}

double csv_number(std::string_view cell) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (cell.size() > 64) return nan;
  std::string digits;
  for (const char byte : cell) {
    if (byte != ',' && byte != ' ') digits += byte;
  }
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  return stop == end && error == std::errc() && !digits.empty() ? value : nan;
}

}  // namespace octet
