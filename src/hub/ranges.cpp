#include "hub/ranges.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "formats/text.h"

namespace octet::hub {
namespace {

// The number at the begin of `text`, which loses it and the character behind it.
std::optional<uint64_t> take_number(std::string_view& text, char behind) {
  uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc()) return std::nullopt;
  if (behind == '\0') {
    if (end != last) return std::nullopt;
    text = {};
    return value;
  }
  if (end == last || *end != behind) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return value;
}

}  // namespace

uint64_t end_of_content_range(const std::string& header, uint64_t from, uint64_t to, uint64_t size,
                              const std::string& what) {
  std::string_view text = header;
  constexpr std::string_view kUnit = "bytes ";
  bool fits = text.substr(0, kUnit.size()) == kUnit;
  uint64_t end = 0;
  if (fits) {
    text.remove_prefix(kUnit.size());
    const auto first = take_number(text, '-');
    const auto last = take_number(text, '/');
    const auto whole = text == "*" ? std::optional(size) : take_number(text, '\0');
    fits = first == from && last && *last >= from && *last < to && whole == size;
    if (fits) end = *last + 1;
  }
  check(fits, "{}: the server sends the range {}, expected bytes {}-{}/{}; pull again later", what,
        in_quotes(header), from, to - 1, size);
  return end;
}

}  // namespace octet::hub
