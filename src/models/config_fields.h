// Reading config.json files of Hugging Face folders: every number is checked, for what they say
// decides how much memory is taken. A key that is absent has the value of the published model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/json.h"
#include "formats/json_value.h"

namespace octet::models {

inline constexpr int64_t kMostLayers = 4096;
inline constexpr int64_t kMostChannels = int64_t{1} << 17;  // the longest row that INT8 sums allow

// One object of a configuration file.
class ConfigFields {
 public:
  ConfigFields(const std::string& path, const nlohmann::json& object)
      : path_(path), object_(object) {
    check(object_.is_object(), "{}: is {}, expected an object", path_, describe(object_));
  }

  const std::string& path() const { return path_; }  // what begins a sentence about it

  // The value of `key`, or null when it is absent or null.
  const nlohmann::json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  int64_t integer(const char* key, int64_t absent, int64_t least, int64_t most) const {
    const nlohmann::json* value = find(key);
    return value == nullptr ? absent : integer_of(*value, key, least, most);
  }

  double number(const char* key, double absent, double least, double most) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return absent;
    check(value->is_number() && *value >= least && *value <= most,
          "{}: {} is {}, expected a number from {} to {}", path_, key, describe(*value), least,
          most);
    return value->get<double>();
  }

  bool boolean(const char* key, bool absent) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return absent;
    check(value->is_boolean(), "{}: {} is {}, expected true or false", path_, key,
          describe(*value));
    return value->get<bool>();
  }

  std::vector<int64_t> integers(const char* key, std::vector<int64_t> absent, size_t least_count,
                                size_t most_count, int64_t least, int64_t most) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return absent;
    check(value->is_array() && value->size() >= least_count && value->size() <= most_count,
          "{}: {} is {}, expected an array of {} to {} integers", path_, key, describe(*value),
          least_count, most_count);
    std::vector<int64_t> numbers;
    for (const nlohmann::json& element : *value)
      numbers.push_back(integer_of(element, key, least, most));
    return numbers;
  }

  // A key that must have this value where it is there: any other is a model that is not this one.
  void expect(const char* key, const nlohmann::json& wanted) const {
    const nlohmann::json* value = find(key);
    check(value == nullptr || is_same(*value, wanted), "{}: {} is {}, expected {}", path_, key,
          value == nullptr ? "" : describe(*value), describe(wanted));
  }

 private:
  int64_t integer_of(const nlohmann::json& value, const char* key, int64_t least,
                     int64_t most) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX) &&
                      value.get<int64_t>() >= least && value.get<int64_t>() <= most;
    check(fits, "{}: {} is {}, expected an integer from {} to {}", path_, key, describe(value),
          least, most);
    return value.get<int64_t>();
  }

  std::string path_;
  const nlohmann::json& object_;
};

// The config.json in the folder `path`, or next to the file `path`; empty if there is none.
inline std::string find_config(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path given(path);
  const bool is_folder = std::filesystem::is_directory(given, ignored);
  const std::string file = ((is_folder ? given : given.parent_path()) / "config.json").string();
  return is_file_there(file) ? file : "";
}

}  // namespace octet::models
