// How flags, JSON, Python and pages spell the values of an enum. Each enum has one list beside it,
// in the order in which help pages and errors name the values:
//
//   template <>
//   struct Words<Residency> {
//     static constexpr Word<Residency> list[] = {{Residency::device, "device"}, ...};
//   };
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

template <class Enum>
struct Word {
  Enum value;
  const char* word;
  const char* title = word;  // the same for people
};

template <class Enum>
struct Words;

template <class Enum>
constexpr const char* word_of(Enum value) {
  for (const Word<Enum>& each : Words<Enum>::list) {
    if (each.value == value) return each.word;
  }
  return "";
}

template <class Enum>
constexpr const char* title_of(Enum value) {
  for (const Word<Enum>& each : Words<Enum>::list) {
    if (each.value == value) return each.title;
  }
  return "";
}

// Nothing for any other text.
template <class Enum>
constexpr std::optional<Enum> from_word(std::string_view text) {
  for (const Word<Enum>& each : Words<Enum>::list) {
    if (text == each.word) return each.value;
  }
  return std::nullopt;
}

// All words, or those of the chosen values.
template <class Enum>
std::vector<std::string> word_list(std::initializer_list<Enum> chosen = {}) {
  std::vector<std::string> words;
  for (const Word<Enum>& each : Words<Enum>::list) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), each.value) != chosen.end();
    if (chosen.size() == 0 || is_chosen) words.emplace_back(each.word);
  }
  return words;
}

}  // namespace octet
