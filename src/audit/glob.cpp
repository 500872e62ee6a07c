#include "audit/glob.h"

#include <cstddef>

namespace octet::audit {
namespace {

// What stands for one character at the start of a pattern: itself, '?' or a set.
std::string_view glob_element(std::string_view pattern) {
  const size_t end = pattern.starts_with('[') ? pattern.find(']', 1) : std::string_view::npos;
  return pattern.substr(0, end == std::string_view::npos ? 1 : end + 1);
}

bool glob_element_fits(std::string_view element, char c) {
  if (element.size() == 1) return element[0] == '?' || element[0] == c;
  const std::string_view set = element.substr(1, element.size() - 2);
  for (size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    if (is_range ? set[i] <= c && c <= set[i + 2] : set[i] == c) return true;
    if (is_range) i += 2;
  }
  return false;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  constexpr size_t kNowhere = std::string_view::npos;
  std::string_view behind_star;  // what stands behind the last '*' so far, and
  size_t tried = kNowhere;       // where in the text it was tried; nowhere: there was none
  for (size_t at = 0; at < text.size();) {
    const std::string_view element = glob_element(pattern);
    if (element == "*") {
      pattern.remove_prefix(1);
      if (pattern.empty()) return true;
      behind_star = pattern;
      tried = at;
    } else if (!element.empty() && glob_element_fits(element, text[at])) {
      pattern.remove_prefix(element.size());
      ++at;
    } else {
      if (tried == kNowhere) return false;
      const bool is_plain = behind_star[0] != '?' && behind_star[0] != '[' && behind_star[0] != '*';
      tried = is_plain ? text.find(behind_star[0], tried + 1) : tried + 1;
      if (tried == kNowhere) return false;
      pattern = behind_star;
      at = tried;
    }
  }
  return pattern.find_first_not_of('*') == kNowhere;
}

}  // namespace octet::audit
