#include "audit/text_table.h"

#include <algorithm>

namespace octet::audit {
namespace {

constexpr size_t kLeastColumns = 4, kMostColumns = 64;
constexpr size_t kLeastDashes = 3;  // of a column, "---"

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string> split_at_gaps(std::string_view line) {
  std::vector<std::string> cells;
  line = trimmed(line);
  while (!line.empty() && cells.size() <= kMostColumns) {
    const size_t gap = line.find("  ");
    cells.emplace_back(line.substr(0, gap));
    line = gap == line.npos ? std::string_view() : trimmed(line.substr(gap));
  }
  return cells;
}

}  // namespace

bool TextColumns::begin(std::string_view line) {
  // What a log or a quote puts before each line has no run of dashes.
  size_t at = line.find("---");
  std::vector<std::pair<size_t, size_t>> columns;
  while (at < line.size() && columns.size() < kMostColumns) {
    const size_t end = std::min(line.find_first_not_of('-', at), line.size());
    if (end - at < kLeastDashes) return false;
    columns.emplace_back(at, end);
    at = line.find_first_not_of(' ', end);
    if (at == line.npos) break;
    // vLLM puts three blanks after the names.
    if (line[at] != '-' || at - end > 3) return false;
  }
  if (columns.size() < kLeastColumns) return false;
  columns_ = std::move(columns);
  return true;
}

std::vector<std::string> TextColumns::cells(std::string_view line) const {
  std::vector<std::string> cells;
  const bool is_in_place = [&] {
    for (size_t i = 1; i < columns_.size(); ++i) {
      const size_t gap = columns_[i - 1].second;
      if (gap < line.size() && line[gap] != ' ') return false;
    }
    return line.size() > columns_[1].first;
  }();
  if (is_in_place) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto [begin, end] = columns_[i];
      const bool is_last = i + 1 == columns_.size();
      const size_t length = is_last ? std::string_view::npos : end - begin;
      cells.emplace_back(begin < line.size() ? trimmed(line.substr(begin, length)) : "");
    }
    return cells;
  }
  // With and without what stands before the dashes, too: a log's mark is no cell.
  const size_t begin = columns_.empty() ? 0 : columns_[0].first;
  for (const size_t from : {begin, size_t{0}}) {
    cells = split_at_gaps(line.substr(std::min(from, line.size())));
    if (cells.size() == columns_.size()) return cells;
  }
  return {};
}

}  // namespace octet::audit
