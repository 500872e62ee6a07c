#include "base/closest_word.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace octet {
namespace {

constexpr size_t kLongestWord = 64;  // longer ones are not misspellings but untrusted input
constexpr size_t kShortestBeginning = 3;

std::string folded(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-' || c == ' ') c = '_';
  }
  return text;
}

// Levenshtein distance, with a swap of neighbours as one edit.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

bool is_beginning(std::string_view a, std::string_view b) {
  return std::min(a.size(), b.size()) >= kShortestBeginning &&
         (a.starts_with(b) || b.starts_with(a));
}

}  // namespace

std::optional<std::string_view> closest_word(std::string_view word,
                                             std::span<const std::string_view> candidates) {
  if (word.size() > kLongestWord) return std::nullopt;
  const std::string given = folded(word);
  std::optional<std::string_view> closest;
  size_t least = 0;
  for (const std::string_view candidate : candidates) {
    const std::string known = folded(candidate);
    const size_t edits = distance(given, known);
    const bool is_close =
        3 * edits < std::max(given.size(), known.size()) || is_beginning(given, known);
    if (!is_close || (closest && edits >= least)) continue;
    closest = candidate;
    least = edits;
  }
  return closest;
}

}  // namespace octet
