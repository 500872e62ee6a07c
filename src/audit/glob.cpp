#include "audit/glob.h"

#include <cstddef>

namespace octet::audit {
namespace {

// What stands for one character at the start of a piece: itself, '?' or a set.
std::string_view glob_element(std::string_view piece) {
  const size_t end = piece[0] == '[' ? piece.find(']', 1) : std::string_view::npos;
  return piece.substr(0, end == std::string_view::npos ? 1 : end + 1);
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

// What stands between two '*'.
struct GlobPiece {
  explicit GlobPiece(std::string_view piece)
      : text(piece),
        is_literal(text.find('?') == text.npos && text.find('[') == text.npos),
        width(is_literal ? text.size() : elements()) {}

  // `name` is at least as long as the piece.
  bool fits(std::string_view name) const {
    if (is_literal) return name.starts_with(text);
    std::string_view rest = text;
    for (size_t i = 0; !rest.empty(); ++i) {
      const std::string_view element = glob_element(rest);
      if (!glob_element_fits(element, name[i])) return false;
      rest.remove_prefix(element.size());
    }
    return true;
  }

  size_t find_in(std::string_view name) const {
    if (is_literal) return name.find(text);
    for (size_t at = 0; at + width <= name.size(); ++at) {
      if (fits(name.substr(at))) return at;
    }
    return std::string_view::npos;
  }

  size_t elements() const {
    size_t count = 0;
    std::string_view rest = text;
    for (; !rest.empty(); ++count) rest.remove_prefix(glob_element(rest).size());
    return count;
  }

  std::string_view text;
  bool is_literal;
  size_t width;  // characters of a name
};

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  const size_t first_star = pattern.find('*');
  const GlobPiece head(pattern.substr(0, first_star));
  if (head.width > text.size() || !head.fits(text)) return false;
  text.remove_prefix(head.width);
  if (first_star == std::string_view::npos) return text.empty();

  const size_t last_star = pattern.rfind('*');
  const GlobPiece tail(pattern.substr(last_star + 1));
  if (tail.width > text.size()) return false;
  if (!tail.fits(text.substr(text.size() - tail.width))) return false;
  text.remove_suffix(tail.width);

  std::string_view middle = pattern.substr(first_star, last_star - first_star);
  while (!middle.empty()) {
    middle.remove_prefix(1);  // the '*'
    const GlobPiece piece(middle.substr(0, middle.find('*')));
    const size_t at = piece.find_in(text);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + piece.width);
    middle.remove_prefix(piece.text.size());
  }
  return true;
}

}  // namespace octet::audit
