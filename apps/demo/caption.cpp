#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "demo/grammar.h"
#include "demo/scene.h"
#include "formats/json_value.h"
#include "octet/error.h"
#include "octet/tools/text.h"

namespace octet::demo {
namespace {

using nlohmann::ordered_json;

// The model reads descriptions of one sentence, and takes a limited number of tokens.
constexpr size_t kLongestDescription = 300;

// Descriptions of the training begin with an article. One that begins with a word in capitals mixes
// up the letters of the words to paint, seen with "WELCOME in big letters, HOME in small letters".
std::string_view lead_of(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  return !tokens.empty() && is_shouted(tokens.front()) ? "A picture: " : "";
}

const Rgb& first_colour(const Group& group, size_t member, const Words& words) {
  const bool has_two = group.thing && words.things[*group.thing].usual.size() > 1;
  return group.colours[has_two ? 0 : member % group.colours.size()];
}

// "red heart"
std::string phrase_of(const Group& thing, size_t member, const Words& words) {
  return words.name_of(first_colour(thing, member, words)) + " " + words.things[*thing.thing].noun;
}

// "a red heart", with the article's first letter as given.
std::string with_article(const std::string& phrase, std::string article) {
  const bool is_vowel = std::string_view("aeiou").find(phrase[0]) != std::string_view::npos;
  return article + (is_vowel ? "n " : " ") + phrase;
}

// "A picture with a red heart and ..."
class SceneText {
 public:
  void add(const std::string& part) {
    text_ += (text_.empty() ? "A picture with " : " and ") + part;
  }
  std::string text() const { return text_.empty() ? "A picture" : text_; }

 private:
  std::string text_;
};

// As those of the training, of what is painted: the text itself would speak of what is not.
std::string description_of(const Scene& scene, const Words& words) {
  SceneText text;
  for (const Group& group : scene.groups) {
    for (const std::string& word : group.words) text.add("the word \"" + word + "\"");
    for (size_t i = 0; group.thing && i < group.count; ++i) {
      text.add(with_article(phrase_of(group, i, words), "a"));
    }
  }
  return text.text();
}

// The same for people, who count: "4 gold stars".
std::string summary_of(const Scene& scene, const Words& words) {
  SceneText text;
  for (const Group& group : scene.groups) {
    for (const std::string& word : group.words) text.add("the word \"" + word + "\"");
    for (size_t i = 0, end = 0; group.thing && i < group.count; i = end) {
      const std::string phrase = phrase_of(group, i, words);
      while (end < group.count && phrase_of(group, end, words) == phrase) ++end;
      text.add(end == i + 1 ? with_article(phrase, "a")
                            : fmt::format("{} {}", end - i, plural_of(phrase)));
    }
  }
  return text.text();
}

// What has the colours of the background, because the text says so.
std::vector<std::string> warnings_of(const Scene& scene, const Words& words) {
  constexpr double kUnseen = 0.12;
  std::vector<std::string> warnings;
  const auto is_ground = [&](const Rgb& colour) {
    return std::ranges::all_of(
        scene.background, [&](const Rgb& ground) { return distance(colour, ground) < kUnseen; });
  };
  for (const Group& group : scene.groups) {
    if (!std::ranges::all_of(group.colours, is_ground)) continue;
    const std::string what =
        group.thing ? "the " + phrase_of(group, 0, words)
                    : fmt::format("the {} word \"{}\"", words.name_of(group.colours.front()),
                                  group.words.front());
    warnings.push_back(fmt::format("{} can hardly be seen: the background has its colour", what));
  }
  return warnings;
}

// Descriptions of the training are ASCII. Marks that it never saw mix up the letters of the words
// to paint, seen with a word between Japanese quotes.
bool is_as_trained(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0 && c < 128; });
}

// The whole text of ASCII, or its beginning.
std::string description_from(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  text = text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  const std::string lead(lead_of(text));
  if (text.size() <= kLongestDescription) return lead + std::string(text);
  return lead + std::string(text.substr(0, kLongestDescription)) + "...";
}

ordered_json bbox(const Box& box) {
  const auto thousandths = [](int pixels) { return std::lround(1000.0 * pixels / kSide); };
  return {thousandths(box.y), thousandths(box.x), thousandths(box.y + box.height),
          thousandths(box.x + box.width)};
}

ordered_json element_from(const Group& group, size_t member, const Box& box, const Words& words) {
  ordered_json element;
  element["type"] = group.thing ? "obj" : "text";
  element["bbox"] = bbox(box);
  ordered_json palette = ordered_json::array();
  if (group.thing) {
    element["desc"] = with_article(phrase_of(group, member, words), "A");
    const bool has_two = words.things[*group.thing].usual.size() > 1;
    palette.push_back(hexadecimal(first_colour(group, member, words)));
    if (has_two) palette.push_back(hexadecimal(group.colours[1]));
  } else {
    element["text"] = group.words[member];
    element["desc"] = fmt::format("The {} letters", words.fonts[group.font]);
    palette.push_back(hexadecimal(first_colour(group, member, words)));
  }
  element["color_palette"] = std::move(palette);
  return element;
}

std::string background_from(const std::vector<Rgb>& colours, const Words& words) {
  const std::string first = hexadecimal(colours.front());
  if (colours.size() > 1) {
    return fmt::format("A vertical gradient from {} to {}", first, hexadecimal(colours.back()));
  }
  return fmt::format("A flat {} background in {}", words.name_of(colours.front()), first);
}

std::string nouns_of(const Words& words) {
  std::string nouns;
  for (const Thing& thing : words.things) nouns += (nouns.empty() ? "" : ", ") + thing.noun;
  return nouns;
}

}  // namespace

WrittenCaption caption_from_text(std::string_view text, const Words& words) {
  const std::vector<Token> tokens = tokens_of(text);
  Scene scene = read_scene(tokens, words);
  if (scene.groups.empty() && scene.background.empty()) {
    throw InvalidRequest(
        "prompt",
        fmt::format("the text \"{}\" {}; expected some of {}, or a word in quotes, as in: a red "
                    "heart and the word 'HELLO' on yellow",
                    printable(text),
                    scene.negations.empty() ? "has nothing that the demo's model can paint"
                                            : "names nothing to paint but what it does not want",
                    nouns_of(words)));
  }
  choose_colours(scene, words);
  const Boxes boxes = arrange(scene, words);
  WrittenCaption written;
  written.left_out = find_left_out(tokens, scene, boxes, words);
  ordered_json elements = ordered_json::array();
  for (size_t i = 0; i < scene.groups.size(); ++i) {
    for (size_t member = 0; member < boxes[i].size(); ++member) {
      elements.push_back(element_from(scene.groups[i], member, boxes[i][member], words));
    }
  }
  const bool says_it = written.left_out.empty() && scene.negations.empty() && is_as_trained(text);
  ordered_json caption;
  caption["high_level_description"] =
      says_it ? description_from(text) : description_of(scene, words);
  written.summary = says_it ? description_from(text) : summary_of(scene, words);
  written.warnings = warnings_of(scene, words);
  caption["compositional_deconstruction"]["background"] = background_from(scene.background, words);
  caption["compositional_deconstruction"]["elements"] = std::move(elements);
  written.caption = caption.dump();
  return written;
}

}  // namespace octet::demo
