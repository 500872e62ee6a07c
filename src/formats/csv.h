// Tables with commas as profilers print them: a row is a line, cells may be quoted, and lines
// of other programs may come before and between.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet {

// The cells of a line, at most kMaxCsvCells of them. A quote inside of quotes is doubled; what
// stands behind a closing quote belongs to the cell. A quoted cell ends with its line.
inline constexpr size_t kMaxCsvCells = 16384;
std::vector<std::string> split_csv(std::string_view line);

// "1,234.5" and "42"; NaN for anything else.
double csv_number(std::string_view cell);

}  // namespace octet
