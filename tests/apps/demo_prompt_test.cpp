// Plain text for the demo's model: what is understood, and that every caption is one that it can
// paint.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "demo/scene.h"
#include "octet/caption.h"
#include "octet/error.h"

namespace octet::test {
namespace {

using demo::Words;
using nlohmann::json;

const Words& trained_words() {
  static const Words words = demo::read_words(OCTET_DEMO_WORDS);
  return words;
}

bool are_apart(const json& a, const json& b) {
  return a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
}

// Valid, with boxes inside, apart and large enough, and words that are short enough.
json caption_of(const std::string& text) {
  const std::string written = demo::caption_from_text(text, trained_words()).caption;
  const CaptionReport report = check_caption(written);
  EXPECT_TRUE(report.valid()) << written;
  EXPECT_EQ(report.canonical, written);
  const json caption = json::parse(written);
  const json& elements = caption["compositional_deconstruction"]["elements"];
  EXPECT_LE(elements.size(), demo::kMostElements);
  for (size_t i = 0; i < elements.size(); ++i) {
    const json& box = elements[i]["bbox"];
    EXPECT_GE(std::min(box[0], box[1]), 20) << written;
    EXPECT_LE(std::max(box[2], box[3]), 980) << written;
    EXPECT_GE(
        std::min(box[2].get<int>() - box[0].get<int>(), box[3].get<int>() - box[1].get<int>()), 40)
        << written;
    for (size_t j = 0; j < i; ++j) EXPECT_TRUE(are_apart(box, elements[j]["bbox"])) << written;
    const size_t letters = elements[i].value("text", "x").size();
    EXPECT_TRUE(letters >= 1 && letters <= trained_words().most_letters) << written;
  }
  return caption;
}

json elements_of(const std::string& text) {
  return caption_of(text)["compositional_deconstruction"]["elements"];
}

std::string background_of(const std::string& text) {
  return caption_of(text)["compositional_deconstruction"]["background"];
}

// "A red heart #DC2828 | HELLO #1B2F6B": what is said of each element, and its first colour.
std::string summary(const std::string& text) {
  std::string all;
  for (const json& element : elements_of(text)) {
    const bool is_text = element["type"] == "text";
    all += (all.empty() ? "" : " | ") + element[is_text ? "text" : "desc"].get<std::string>();
    for (const json& colour : element["color_palette"]) all += " " + colour.get<std::string>();
  }
  return all;
}

bool is_below(const json& a, const json& b) { return a["bbox"][0] >= b["bbox"][2]; }
bool is_right(const json& a, const json& b) { return a["bbox"][1] >= b["bbox"][3]; }

std::string refusal(const std::string& text) {
  try {
    demo::caption_from_text(text, trained_words());
  } catch (const InvalidRequest& error) {
    return error.what();
  }
  return "";
}

TEST(DemoPrompt, ThingsWordsAndABackground) {
  const std::string text = "a red heart and the word HELLO on a yellow background";
  EXPECT_EQ(summary(text), "A red heart #DC2828 | HELLO #1B2F6B");
  EXPECT_EQ(background_of(text), "A flat yellow background in #FAD228");
  const json caption = caption_of(text);
  EXPECT_EQ(caption["high_level_description"], text);
  const json& elements = caption["compositional_deconstruction"]["elements"];
  EXPECT_EQ(elements[1]["desc"], "The bold sans-serif letters");
  EXPECT_TRUE(is_below(elements[1], elements[0]));
}

TEST(DemoPrompt, Colours) {
  EXPECT_EQ(summary("a light-blue star"), "A light blue star #A0CDF5");
  EXPECT_EQ(summary("a heart in #12ab9F"), "A teal heart #12AB9F");
  EXPECT_EQ(summary("the heart is gray"), "A grey heart #878787");
  EXPECT_EQ(summary("a red and white boat"), "A red boat #DC2828 #FFFFFF");
  EXPECT_EQ(summary("a red dog and a circle on red"), summary("a circle on red"));
  EXPECT_EQ(summary("red, green and blue circles"),
            "A red circle #DC2828 | A green circle #28A046 | A blue circle #285AD7");
  EXPECT_EQ(summary("the words GOOD and BAD in red"), "GOOD #DC2828 | BAD #DC2828");
  EXPECT_EQ(summary("GOOD and BAD in green and red"), "GOOD #28A046 | BAD #DC2828");
  EXPECT_EQ(summary("a house whose roof is red, trees"), summary("a house, trees"));
  // Without a name: the thing's own, unless it would not be seen.
  EXPECT_EQ(summary("a heart"), "A red heart #DC2828");
  EXPECT_NE(summary("a heart on red"), "A red heart #DC2828");
  EXPECT_EQ(summary("HELLO on navy"), "HELLO #FFFFFF");
}

TEST(DemoPrompt, Backgrounds) {
  EXPECT_EQ(background_of("a heart on pink"), "A flat pink background in #F596B9");
  EXPECT_EQ(background_of("the background is lime, a red heart"),
            "A flat lime background in #96DC32");
  EXPECT_EQ(background_of("a star in a night sky"), "A flat navy background in #141E5A");
  EXPECT_EQ(background_of("a heart against a plain dark green wall"),
            "A flat dark green background in #0F5028");
  EXPECT_EQ(background_of("a gradient from white to light blue with a heart"),
            "A vertical gradient from #FFFFFF to #A0CDF5");
  EXPECT_EQ(background_of("a heart on a yellow circle"), background_of("a heart, a yellow circle"));
  EXPECT_TRUE(elements_of("a blue background").empty());
}

TEST(DemoPrompt, Numbers) {
  EXPECT_EQ(elements_of("two green triangles").size(), 2u);
  EXPECT_EQ(elements_of("3 stars").size(), 3u);
  EXPECT_EQ(elements_of("a five-pointed star").size(), 1u);
  EXPECT_EQ(elements_of("crosses and boxes").size(), 4u);
  const json elements = elements_of("ten stars and a moon");
  EXPECT_EQ(elements.size(), 4u);
  EXPECT_EQ(elements[3]["desc"], "A yellow moon");
}

TEST(DemoPrompt, LongestNameWins) {
  EXPECT_EQ(elements_of("a pine tree")[0]["desc"], "A dark green pine");
  EXPECT_EQ(elements_of("a smiling face").size(), 1u);
  EXPECT_EQ(elements_of("a house with a roof").size(), 1u);
}

TEST(DemoPrompt, TextToPaint) {
  EXPECT_EQ(summary("'hello' in red"), "hello #DC2828");
  EXPECT_EQ(summary("a sign saying happy birthday on white"), "happy #1B2F6B | birthday #1B2F6B");
  EXPECT_EQ(summary("the word red in blue"), "red #285AD7");
  EXPECT_EQ(summary("“Hello, Bob!” on white"), "Hello #1B2F6B | Bob! #1B2F6B");
  EXPECT_EQ(summary("it's OPEN, isn't it"), "OPEN #1B2F6B");
  EXPECT_EQ(summary("CONGRATULATIONS"), "CONGRAT #1B2F6B | ULATIONS #1B2F6B");
  EXPECT_EQ(summary("A RED HEART"), "A red heart #DC2828");
  EXPECT_EQ(summary("HELLO WORLD"), "HELLO #1B2F6B | WORLD #1B2F6B");
  EXPECT_EQ(summary("red text on a heart"), "A red heart #DC2828");
  const json font = elements_of("HELLO in thin red letters, 'bye' in a typewriter font");
  EXPECT_EQ(font[0]["desc"], "The thin sans-serif letters");
  EXPECT_EQ(font[1]["desc"], "The monospace letters");
}

TEST(DemoPrompt, DescriptionsBeginWithNoCapitals) {
  EXPECT_EQ(caption_of("HELLO, a star")["high_level_description"], "A picture: HELLO, a star");
  EXPECT_EQ(caption_of(" A star\n")["high_level_description"], "A star");
}

TEST(DemoPrompt, DescriptionsHaveNoMarksThatTheTrainingLacks) {
  EXPECT_EQ(caption_of("「HELLO」 in red")["high_level_description"],
            "A picture with the word \"HELLO\"");
}

TEST(DemoPrompt, Places) {
  json pair = elements_of("a house under a sun");
  EXPECT_TRUE(is_below(pair[0], pair[1]));
  pair = elements_of("a sun over a house");
  EXPECT_TRUE(is_below(pair[1], pair[0]));
  pair = elements_of("a heart, below it the word LOVE");
  EXPECT_TRUE(is_below(pair[1], pair[0]));
  pair = elements_of("a heart with the word LOVE above");
  EXPECT_TRUE(is_below(pair[0], pair[1]));
  pair = elements_of("a heart to the right of the word LOVE");
  EXPECT_TRUE(is_right(pair[0], pair[1]));
  pair = elements_of("HELLO on the right and a star on the left");
  EXPECT_TRUE(is_right(pair[0], pair[1]));
  pair = elements_of("HELLO at the bottom, a star at the top");
  EXPECT_TRUE(is_below(pair[0], pair[1]));
  const json one = elements_of("a small star in the lower right corner");
  EXPECT_GE(one[0]["bbox"][0], 600);
  EXPECT_GE(one[0]["bbox"][1], 600);
}

TEST(DemoPrompt, NothingKnown) {
  for (const std::string text : {"a dog", "🙂🙂", "''", "\"", "red", "no heart",
                                 "HI is not wanted", "in on and the", "..."}) {
    const std::string sentence = refusal(text);
    EXPECT_NE(sentence.find("heart"), std::string::npos) << text;
    EXPECT_NE(sentence.find("quotes"), std::string::npos) << text;
  }
}

TEST(DemoPrompt, OddTexts) {
  EXPECT_EQ(summary("🙂 a heart ☀"), "A red heart #DC2828");
  EXPECT_EQ(summary("the word \"HELLO on white"), "HELLO #1B2F6B");
  EXPECT_EQ(
      elements_of("a heart, a star, a sun, a moon, a cup, a car, a tree, 'A', 'B', 'C'").size(),
      4u);
  EXPECT_EQ(elements_of("'" + std::string(32, 'x') + "'").size(), 4u);
  for (const size_t letters : {33u, 150u}) {
    EXPECT_NE(refusal("'" + std::string(letters, 'x') + "'").find(std::to_string(letters)),
              std::string::npos);
  }
  EXPECT_NE(refusal(std::string(50'000, 'X')).find("32 at most"), std::string::npos);
  std::string hearts, quotes;
  for (int i = 0; i < 6000; ++i) hearts += "a heart é ";
  for (int i = 0; i < 20'000; ++i) quotes += "'a ";
  EXPECT_EQ(elements_of(hearts).size(), 4u);
  EXPECT_LE(caption_of(hearts)["high_level_description"].get<std::string>().size(), 400u);
  EXPECT_NE(refusal(quotes), "");
}

// Two parts in every combination, and a third.
TEST(DemoPrompt, CombinationsStayApart) {
  const std::vector<std::string> parts = {"two cars",
                                          "a big heart",
                                          "HELLO",
                                          "'BIRTHDAY' in serif",
                                          "a small tree",
                                          "'A B C D'",
                                          "a cloud at the top",
                                          "a cup on the left",
                                          "'MMMMMMMM' on the right",
                                          "a star at the bottom"};
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = 0; j < parts.size(); ++j) {
      for (const std::string between : {" and ", " above ", " below ", " next to ", " right of "}) {
        const std::string pair = parts[i] + between + parts[j];
        caption_of(pair);
        caption_of(pair + between + parts[(3 * i + 7 * j) % parts.size()]);
      }
    }
  }
}

}  // namespace
}  // namespace octet::test
