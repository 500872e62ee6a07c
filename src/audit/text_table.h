// Tables that profilers print for people, with lines of dashes under (or over) their headers, as
// they are pasted into issues: within logs, quotes or code fences.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::audit {

// The columns that a line of dashes marks: "  ------  ----------  ----".
class TextColumns {
 public:
  // Whether the line is one; then its columns are those of the lines to come.
  bool begin(std::string_view line);
  size_t size() const { return columns_.size(); }
  // The cells of a line without blanks around them, by their place below the dashes. A line that
  // was shifted, by blanks that were lost or another mark before it, is split at its gaps of two
  // blanks instead. Nothing for a line that has other cells.
  std::vector<std::string> cells(std::string_view line) const;

 private:
  std::vector<std::pair<size_t, size_t>> columns_;  // begin and end
};

}  // namespace octet::audit
