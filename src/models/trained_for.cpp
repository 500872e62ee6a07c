#include "models/trained_for.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/text.h"
#include "models/config_fields.h"
#include "models/image_size.h"

namespace octet::models {
namespace {

namespace fs = std::filesystem;

std::string text_in(const ConfigFields& fields, const char* key) {
  const nlohmann::json* value = fields.find(key);
  if (value == nullptr) return "";
  check(value->is_string(), "{}: {} is {}, expected a text", fields.path(), key, describe(*value));
  return value->get<std::string>();
}

// Words in lower case with one space around each, so that whole ones can be searched for.
std::string spaced(std::string_view text) {
  std::string words = " ";
  for (const char c : text) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_letter = is_upper || (c >= 'a' && c <= 'z') || static_cast<signed char>(c) < 0;
    if (is_letter) words += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    if (!is_letter && words.back() != ' ') words += ' ';
  }
  return words.back() == ' ' ? words : words + ' ';
}

// Between the spaces of `spaced`, of which it must be one.
std::vector<std::string_view> words_in(std::string_view spaced) {
  std::vector<std::string_view> words;
  for (size_t at = 1, end; (end = spaced.find(' ', at)) != spaced.npos; at = end + 1) {
    words.push_back(spaced.substr(at, end - at));
  }
  return words;
}

// "in #A1B2C3" as "in ".
std::string without_colours(std::string_view text) {
  constexpr size_t kDigits = 6;
  std::string rest;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t end = text.find_first_not_of("0123456789abcdefABCDEF", at + 1);
    if (text[at] == '#' && std::min(end, text.size()) == at + 1 + kDigits)
      at += kDigits;
    else
      rest += text[at];
  }
  return rest;
}

TrainedFor read_trained_for(const std::string& path) {
  const nlohmann::json root = read_json_file(path);
  const ConfigFields fields(path, root);
  constexpr std::string_view kKeys[] = {
      "summary",     "objects", "characters", "most_letters", "most_elements",
      "line_breaks", "boxes",   "sizes",      "plain_text",   "words"};
  for (const auto& [key, value] : root.items()) {
    check(std::ranges::find(kKeys, key) != std::end(kKeys), "{}: unknown key {}", path,
          in_quotes(key));
  }
  TrainedFor made;
  made.summary = text_in(fields, "summary");
  check(!made.summary.empty(), "{}: has no summary, expected what the model was trained on", path);
  made.characters = text_in(fields, "characters");
  made.plain_text = text_in(fields, "plain_text");
  made.most_letters = static_cast<int>(fields.integer("most_letters", 0, 1, 1'000'000));
  made.most_elements = static_cast<int>(fields.integer("most_elements", 0, 1, 1'000'000));
  made.line_breaks = fields.boolean("line_breaks", true);
  made.boxes = fields.boolean("boxes", false);
  const auto each_of = [&](const char* key, const auto& take) {
    const nlohmann::json* list = fields.find(key);
    check(list == nullptr || list->is_array(), "{}: {} is {}, expected an array", path, key,
          list == nullptr ? "" : describe(*list));
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) take((*list)[i]);
  };
  each_of("objects", [&](const nlohmann::json& word) {
    check(word.is_string(), "{}: objects has {}, expected words", path, describe(word));
    made.objects.push_back(spaced(word.get<std::string>()));
  });
  each_of("words", [&](const nlohmann::json& word) {
    check(word.is_string(), "{}: words has {}, expected words", path, describe(word));
    const std::string text = spaced(word.get<std::string>());  // the words are views of it
    for (const std::string_view each : words_in(text)) made.words.emplace(each);
  });
  for (const std::string& object : made.objects) {
    if (made.words.empty()) break;
    for (const std::string_view each : words_in(object)) made.words.emplace(each);
  }
  each_of("sizes", [&](const nlohmann::json& size) {
    const bool is_pair = size.is_array() && size.size() == 2 &&
                         std::ranges::all_of(size, [](const nlohmann::json& side) {
                           return side.is_number_integer() && side >= 1 && side <= kLongestSide;
                         });
    check(is_pair, "{}: sizes has {}, expected [width, height]", path, describe(size));
    made.sizes.push_back({size[0].get<int>(), size[1].get<int>()});
  });
  return made;
}

}  // namespace

bool TrainedFor::knows(std::string_view description) const {
  const std::string all = spaced(description);
  return objects.empty() || std::ranges::any_of(objects, [&](const std::string& object) {
           const std::string several = object.substr(0, object.size() - 1) + "s ";
           return all.find(object) != all.npos || all.find(several) != all.npos;
         });
}

std::vector<std::string> TrainedFor::unknown_words(std::string_view description) const {
  std::vector<std::string> unknown;
  if (words.empty()) return unknown;
  const std::string all = spaced(without_colours(description));
  for (const std::string_view word : words_in(all)) {
    const bool is_plural = word.ends_with('s') && words.contains(word.substr(0, word.size() - 1));
    const bool is_named = std::ranges::find(unknown, word) != unknown.end();
    if (!is_plural && !is_named && !words.contains(word)) unknown.emplace_back(word);
  }
  return unknown;
}

std::optional<TrainedFor> trained_for(std::initializer_list<std::string> models) {
  for (const std::string& model : models) {
    std::error_code ignored;
    const std::string path = (fs::path(model) / kTrainedForFile).string();
    if (!model.empty() && fs::is_directory(model, ignored) && is_file_there(path)) {
      return read_trained_for(path);
    }
  }
  return std::nullopt;
}

}  // namespace octet::models
