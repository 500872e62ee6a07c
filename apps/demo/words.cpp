#include "demo/words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>

#include "formats/json_value.h"
#include "octet/tools/text.h"

namespace octet::demo {
namespace {

using nlohmann::json;

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

constexpr std::string_view kSpaces = " \t\r\n";

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t end = 0, begin; (begin = text.find_first_not_of(kSpaces, end)) != text.npos;) {
    end = std::min(text.find_first_of(kSpaces, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
  return words;
}

// Of a character of UTF-8, any byte but the first.
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// What ends or brackets a word of a sentence, and is no part of it.
bool is_punctuation(char c) {
  return std::string_view(",.;:()[]\"'").find(c) != std::string_view::npos;
}

// Without the punctuation around it.
std::string_view bare(std::string_view word) {
  while (!word.empty() && is_punctuation(word.front())) word.remove_prefix(1);
  while (!word.empty() && is_punctuation(word.back())) word.remove_suffix(1);
  return word;
}

// "a-z A-Z 0-9 ! ?"
std::string ranges_of(const std::string& characters) {
  std::string ranges;
  for (size_t first = 0, last = 0; first < characters.size(); first = last + 1) {
    last = first;
    while (last + 1 < characters.size() && characters[last + 1] == characters[last] + 1) ++last;
    ranges += ranges.empty() ? "" : " ";
    ranges += characters[first];
    if (last > first) ranges += std::string("-") + characters[last];
  }
  return ranges;
}

}  // namespace

std::string plural_of(const std::string& noun) {
  const auto ends = [&](std::string_view end) { return noun.ends_with(end); };
  if (ends("s") || ends("x") || ends("ch") || ends("sh")) return noun + "es";
  if (ends("y") && !ends("ey")) return noun.substr(0, noun.size() - 1) + "ies";
  return noun + "s";
}

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

std::string Words::painted_of(std::string_view word) const {
  std::string painted;
  for (const char c : bare(word)) {
    if (characters.find(c) != std::string::npos) painted += c;
  }
  // "BIRTHDAY!" in two pieces would be worse than without its mark.
  const size_t end = painted.find_last_not_of("!?") + 1;
  if (painted.size() > most_letters && end > 0 && end <= most_letters) painted.resize(most_letters);
  return painted;
}

std::vector<std::string> Words::pieces_of(std::string_view text) const {
  std::vector<std::string> pieces;
  for (const std::string_view each : words_in(text)) {
    const std::string word = painted_of(each);
    const size_t parts = (word.size() + most_letters - 1) / most_letters;
    for (size_t i = 0; i < parts; ++i) {
      const size_t begin = word.size() * i / parts, end = word.size() * (i + 1) / parts;
      pieces.push_back(word.substr(begin, end - begin));
    }
  }
  return pieces;
}

std::vector<std::string> Words::losses_of(std::string_view text) const {
  std::vector<std::string> losses;
  for (const std::string_view word : words_in(text)) {
    const std::string painted = painted_of(word);
    size_t kept = 0;  // of `painted`, whose letters stand in the word in their order
    for (const char c : word) {
      if (kept < painted.size() && c == painted[kept]) {
        ++kept;
      } else {
        losses.push_back(fmt::format("\"{}\" of \"{}\"", c, word));
      }
    }
    if (painted.size() <= most_letters) continue;
    losses.push_back(fmt::format("\"{}\" in one piece: {} letters fit", painted, most_letters));
  }
  return losses;
}

void Words::check_letters(std::string_view text) const {
  constexpr size_t kMostPieces = 4;
  for (const std::string_view whole : words_in(text)) {
    const std::string_view word = bare(whole);
    const auto bad =
        std::ranges::find_if(word, [&](char c) { return characters.find(c) == std::string::npos; });
    if (bad != word.end()) {
      size_t end = static_cast<size_t>(bad - word.begin()) + 1;
      while (end < word.size() && is_continuation(word[end])) ++end;
      const std::string_view letter(bad, word.begin() + static_cast<std::ptrdiff_t>(end));
      throw InvalidRequest(
          "prompt", fmt::format("the letter \"{}\" of \"{}\" is none that the demo's model can "
                                "paint, expected only {}",
                                printable(letter), printable(word), ranges_of(characters)));
    }
    if (word.size() > kMostPieces * most_letters) {
      throw InvalidRequest(
          "prompt", fmt::format("the word \"{}...\" has {} letters, expected {} at most, as {} "
                                "words of {} letters",
                                printable(word.substr(0, most_letters)), word.size(),
                                kMostPieces * most_letters, kMostPieces, most_letters));
    }
  }
}

const std::string& Words::name_of(const Rgb& colour) const {
  const auto nearer = [&](const auto& a, const auto& b) {
    return distance(a.second, colour) < distance(b.second, colour);
  };
  return std::min_element(names.begin(), names.end(), nearer)->first;
}

bool Words::is_kind_of(const Rgb& colour, const Rgb& kind) const {
  constexpr double kAlike = 0.15;  // gold is no name of a yellow, and looks like one
  const std::string& name = name_of(colour);
  return name == name_of(kind) || name.ends_with(" " + name_of(kind)) ||
         distance(colour, kind) < kAlike;
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
