#include "octet/tools/config.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/closest_word.h"
#include "base/env.h"
#include "base/error.h"
#include "base/regular_file.h"
#include "formats/boundary.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr size_t kMostConfigBytes = 65'536;
constexpr std::string_view kConfigKeys[] = {"model", "base", "device"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// The value of TOML's `"text"` or `'text'`, with nothing but a comment behind it; without escapes,
// which no name of a model needs.
std::string value_from(std::string_view text, const std::string& where) {
  const char quote = text.empty() ? '\0' : text.front();
  const size_t end = text.find(quote, 1);
  const bool is_quoted = (quote == '"' || quote == '\'') && end != text.npos;
  check(is_quoted, "{}: the value is {}, expected a text in quotes", where, in_quotes(text));
  const std::string_view value = text.substr(1, end - 1), rest = trimmed(text.substr(end + 1));
  check(rest.empty() || rest.front() == '#', "{}: {} stands behind the value, expected nothing",
        where, in_quotes(rest));
  check(!value.empty() && (quote == '\'' || value.find('\\') == value.npos),
        "{}: the value is empty or has a backslash, expected a name; take single quotes for a "
        "backslash",
        where);
  return std::string(value);
}

std::string with_home(std::string value) {
  const auto home = env::home();
  return home && value.starts_with("~/") ? (*home / value.substr(2)).string() : value;
}

void set_value(Config& config, const std::string& key, std::string value,
               const std::string& where) {
  if (std::find(std::begin(kConfigKeys), std::end(kConfigKeys), key) == std::end(kConfigKeys)) {
    const auto meant = closest_word(key, kConfigKeys);
    fail("{}: {} is not a key; {}", where, in_quotes(key),
         meant ? fmt::format("did you mean {}?", *meant) : "expected model, base or device");
  }
  std::optional<std::string>& into = key == "model"  ? config.model
                                     : key == "base" ? config.base
                                                     : config.device;
  check(!into, "{}: {} was given before, expected once", where, key);
  into = key == "device" ? value : with_home(std::move(value));
}

}  // namespace

Config read_config() try {
  Config config;
  const auto file = env::config_file();
  if (!file) return config;
  config.file = file->path.string();
  const auto text = read_start(config.file, kMostConfigBytes + 1);
  check(text || !file->is_named, "OCTET_CONFIG names {}, and there is no such file", config.file);
  if (!text) return config;
  config.is_there = true;
  check(text->size() <= kMostConfigBytes && is_utf8(*text),
        "{}: is longer than {} bytes or not UTF-8, expected lines such as model = \"owner/name\"",
        config.file, kMostConfigBytes);
  std::istringstream lines(*text);
  lines.exceptions(std::ios::badbit);  // without memory it would just end
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}, line {}", config.file, ++number);
    const std::string_view words = trimmed(line);
    if (words.empty() || words.front() == '#') continue;
    const size_t equals = words.find('=');
    check(equals != words.npos, "{}: is {}, expected key = \"value\"", where, in_quotes(words));
    set_value(config, std::string(trimmed(words.substr(0, equals))),
              value_from(trimmed(words.substr(equals + 1)), where), where);
  }
  return config;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
