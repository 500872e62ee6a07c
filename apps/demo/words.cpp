#include "demo/words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace octet::demo {
namespace {

using nlohmann::json;

std::string plural_of(const std::string& noun) {
  const auto ends = [&](std::string_view end) { return noun.ends_with(end); };
  if (ends("s") || ends("x") || ends("ch") || ends("sh")) return noun + "es";
  if (ends("y") && !ends("ey")) return noun.substr(0, noun.size() - 1) + "ies";
  return noun + "s";
}

Rgb rgb_from(const json& value, const std::string& path) {
  const auto colour = parse_rgb(value.get<std::string>());
  if (!colour) refuse("{}: {} is not a colour, expected #RRGGBB", path, value.dump());
  return *colour;
}

void add_things(Words& words, const json& list, const std::string& path) {
  for (const json& each : list) {
    Thing thing{.noun = each.at("noun"), .usual = {}, .shape = each.at("shape")};
    if (!(thing.shape > 0.4 && thing.shape < 2.5)) {
      refuse("{}: the shape of {} is {}, expected 0.4 to 2.5", path, thing.noun, thing.shape);
    }
    for (const json& colour : each.at("colours")) thing.usual.push_back(rgb_from(colour, path));
    const Meaning meaning{.kind = Meaning::Kind::thing, .index = words.things.size()};
    for (const json& word : each.at("words")) words.add(word, meaning);
    words.things.push_back(std::move(thing));
  }
  // After all that are meant one by one: "stripes" is a thing, no plural.
  for (const json& each : list) {
    const Meaning* meaning = words.find(each.at("words").at(0));
    if (meaning == nullptr) continue;
    Meaning plural = *meaning;
    plural.plural = true;
    for (const json& word : each.at("words")) words.add(plural_of(word), plural);
  }
}

Words words_from(const json& table, const std::string& path) {
  Words words;
  for (const auto& [name, value] : table.at("colours").items()) {
    const Rgb colour = rgb_from(value, path);
    words.names[name] = colour;
    words.add(name, {.kind = Meaning::Kind::colour, .colour = colour});
  }
  for (const auto& [name, value] : table.at("more_colours").items()) {
    words.add(name, {.kind = Meaning::Kind::colour, .colour = rgb_from(value, path)});
  }
  add_things(words, table.at("things"), path);
  for (const json& font : table.at("fonts")) {
    const Meaning meaning{.kind = Meaning::Kind::font, .index = words.fonts.size()};
    for (const json& word : font.at("words")) words.add(word, meaning);
    words.fonts.push_back(font.at("phrase"));
  }
  for (const auto& [word, value] : table.at("backgrounds").items()) {
    Meaning meaning{.kind = Meaning::Kind::background};
    if (!value.is_null()) meaning.colour = rgb_from(value, path);
    words.add(word, meaning);
  }
  words.characters = table.at("characters");
  const int most = table.at("most_letters");
  if (words.things.empty() || words.fonts.empty() || words.names.empty() || most <= 0) {
    refuse(
        "{}: has no things, no fonts, no colours or words without letters, expected some of each",
        path);
  }
  words.most_letters = static_cast<size_t>(most);
  return words;
}

}  // namespace

std::optional<Rgb> parse_rgb(std::string_view text) {
  if (text.size() != 7 || text[0] != '#') return std::nullopt;
  unsigned value = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + 1, end, value, 16).ptr != end) return std::nullopt;
  const auto part = [value](int shift) { return static_cast<int>(value >> shift & 0xff); };
  return Rgb{part(16), part(8), part(0)};
}

std::string hexadecimal(const Rgb& colour) {
  return fmt::format("#{:02X}{:02X}{:02X}", colour.red, colour.green, colour.blue);
}

double distance(const Rgb& a, const Rgb& b) {
  const double red = (a.red - b.red) / 255.0, green = (a.green - b.green) / 255.0;
  const double blue = (a.blue - b.blue) / 255.0;
  return std::sqrt(0.30 * red * red + 0.49 * green * green + 0.21 * blue * blue);
}

const Meaning* Words::find(const std::string& phrase) const {
  const auto found = phrases_.find(phrase);
  return found == phrases_.end() ? nullptr : &found->second;
}

std::vector<std::string> Words::pieces_of(std::string_view text) const {
  std::vector<std::string> pieces;
  std::string word;
  const auto end_word = [&] {
    const size_t parts = (word.size() + most_letters - 1) / most_letters;
    for (size_t i = 0; i < parts; ++i) {
      const size_t begin = word.size() * i / parts, end = word.size() * (i + 1) / parts;
      pieces.push_back(word.substr(begin, end - begin));
    }
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      end_word();
    } else if (characters.find(c) != std::string::npos) {
      word += c;
    }
  }
  end_word();
  return pieces;
}

const std::string& Words::name_of(const Rgb& colour) const {
  const auto nearer = [&](const auto& a, const auto& b) {
    return distance(a.second, colour) < distance(b.second, colour);
  };
  return std::min_element(names.begin(), names.end(), nearer)->first;
}

// Words with a hyphen are two, as in the texts of people. Who comes first stays.
void Words::add(std::string phrase, const Meaning& meaning) {
  std::replace(phrase.begin(), phrase.end(), '-', ' ');
  const auto spaces = std::count(phrase.begin(), phrase.end(), ' ');
  longest_ = std::max(longest_, static_cast<size_t>(spaces) + 1);
  phrases_.emplace(std::move(phrase), meaning);
}

Words read_words(const std::string& path) {
  std::ifstream file(path);
  try {
    return words_from(json::parse(file), path);
  } catch (const json::exception& error) {
    refuse("{}: is not a table of words, expected what tools/demo_model/write_words.py writes: {}",
           path, error.what());
  }
}

}  // namespace octet::demo
