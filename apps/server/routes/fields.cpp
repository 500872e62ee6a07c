#include "server/routes/fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace octet::server {
namespace {

constexpr size_t kMostShown = 60;                  // bytes of a wrong text
constexpr double kLastWhole = 9007199254740992.0;  // 2^53: up to here a double is an integer

std::string kind_of(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "a text";
  return to_line(value);
}

std::string shown(const Json& value) {
  if (value.is_string() && value.get_ref<const std::string&>().size() <= kMostShown) {
    return to_line(value);
  }
  return kind_of(value);
}

// A client may call a field whatever it likes; a sentence is one line.
std::string shown_field(const std::string& name) {
  if (name.size() > kMostShown) return "a field with a long name";
  const bool is_line =
      std::ranges::none_of(name, [](unsigned char each) { return each < ' ' || each == 0x7f; });
  return is_line ? name : "a field with a strange name";
}

// JSON knows one kind of numbers: 4.0 is an integer.
std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::abs(number) > kLastWhole || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace

Fields::Fields(const Json& object, const std::string& what, std::string inside)
    : object_(object), inside_(std::move(inside)) {
  if (!object.is_object()) {
    refuse(400, fmt::format("{} is {}, expected an object", what, kind_of(object)),
           inside_.empty() ? "" : inside_.substr(0, inside_.size() - 1));
  }
}

const Json* Fields::find(const std::string& name) {
  known_.insert(name);
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::optional<std::string> Fields::text(const std::string& name, size_t max_bytes) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_value(name, *value, "a text");
  std::string text = value->get<std::string>();
  if (text.size() > max_bytes) {
    refuse_field(path(name), fmt::format("`{}` has {} bytes, expected at most {}", path(name),
                                         text.size(), max_bytes));
  }
  return text;
}

std::optional<int64_t> Fields::integer(const std::string& name, int64_t low, int64_t high) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = whole_number(*value);
  if (!number || *number < low || *number > high) {
    refuse_value(name, *value, fmt::format("an integer from {} to {}", low, high));
  }
  return number;
}

std::optional<uint64_t> Fields::seed(const std::string& name) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  const std::optional<int64_t> number = whole_number(*value);
  if (!number || *number < 0) {
    refuse_value(name, *value, fmt::format("an integer from 0 to {}", UINT64_MAX));
  }
  return static_cast<uint64_t>(*number);
}

std::optional<double> Fields::number(const std::string& name, double low, double high) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a number from {} to {}", low, high);
  if (!value->is_number()) refuse_value(name, *value, expected);
  const double number = value->get<double>();
  if (!(number >= low && number <= high)) refuse_value(name, *value, expected);
  return number;
}

std::optional<bool> Fields::truth(const std::string& name) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_value(name, *value, "true or false");
  return value->get<bool>();
}

const Json* Fields::list(const std::string& name, size_t longest) {
  const Json* const value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) refuse_value(name, *value, "a list");
  if (value->size() > longest) {
    refuse_field(path(name), fmt::format("`{}` has {} entries, expected at most {}", path(name),
                                         value->size(), longest));
  }
  return value;
}

std::optional<std::string> Fields::choice(const std::string& name,
                                          const std::vector<std::string>& of) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  for (const std::string& each : of) {
    if (value->is_string() && value->get_ref<const std::string&>() == each) return each;
  }
  refuse_value(name, *value, fmt::format("one of {}", fmt::join(of, ", ")));
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!known_.contains(name)) names.push_back(name);
  }
  return names;
}

void Fields::refuse_unknown() const {
  for (const std::string& name : unknown()) {
    const std::string shown_name = shown_field(name);
    refuse(400,
           fmt::format("`{}` is not a field of this request, expected some of {}", path(shown_name),
                       fmt::join(known_, ", ")),
           path(shown_name), "unknown_field");
  }
}

void Fields::refuse_value(const std::string& name, const Json& found,
                          const std::string& expected) const {
  refuse_field(path(name),
               fmt::format("`{}` is {}, expected {}", path(name), shown(found), expected));
}

}  // namespace octet::server
