// Nothing of a prompt is missing on the picture without a word about it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "demo/scene.h"
#include "octet/error.h"

namespace octet::test {
namespace {

using nlohmann::json;

const demo::Words& known_words() {
  static const demo::Words words = demo::read_words(OCTET_DEMO_WORDS);
  return words;
}

std::string joined(const std::vector<std::string>& list, const std::string& between) {
  std::string all;
  for (const std::string& each : list) all += (all.empty() ? "" : between) + each;
  return all;
}

json elements_of(const demo::WrittenCaption& written) {
  return json::parse(written.caption)["compositional_deconstruction"]["elements"];
}

// One prompt of demo_prompts.txt, or what came of it.
struct Case {
  std::string prompt, painted, left_out, refused;
};

Case outcome(const std::string& prompt) {
  Case result{.prompt = prompt};
  try {
    const demo::WrittenCaption written = demo::caption_from_text(prompt, known_words());
    std::vector<std::string> painted;
    for (const json& element : elements_of(written)) {
      const std::string desc = element["desc"];
      painted.push_back(element["type"] == "obj" ? desc : "'" + std::string(element["text"]) + "'");
    }
    result.painted = joined(painted, " | ");
    result.left_out = joined(written.left_out, ", ");
  } catch (const InvalidRequest& error) {
    EXPECT_EQ(error.field(), "prompt");
    const std::string sentence = error.what();
    const std::string letter = "the letter ";
    const bool is_letter = sentence.starts_with(letter);
    EXPECT_NE(sentence.find(is_letter ? "a-z A-Z 0-9" : "expected some of circle"), sentence.npos);
    const size_t end = sentence.find(" is none");
    result.refused = is_letter ? sentence.substr(letter.size(), end - letter.size()) : "nothing";
  }
  return result;
}

std::vector<Case> read_cases() {
  std::ifstream file(OCTET_DEMO_PROMPTS);
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    switch (line[0]) {
      case '=': cases.back().painted = rest; break;
      case '-': cases.back().left_out = rest; break;
      case '!': cases.back().refused = rest; break;
      default: cases.push_back({.prompt = line});
    }
  }
  return cases;
}

TEST(DemoLeftOut, PromptsOfPeople) {
  const std::vector<Case> cases = read_cases();
  EXPECT_GT(cases.size(), 200u);
  for (const Case& expected : cases) {
    const Case got = outcome(expected.prompt);
    EXPECT_EQ(got.painted, expected.painted) << expected.prompt;
    EXPECT_EQ(got.left_out, expected.left_out) << expected.prompt;
    EXPECT_EQ(got.refused, expected.refused) << expected.prompt;
  }
}

TEST(DemoLeftOut, TheDescriptionSaysNothingThatIsNotThere) {
  const auto description = [](const std::string& prompt) {
    const std::string caption = demo::caption_from_text(prompt, known_words()).caption;
    return json::parse(caption)["high_level_description"].get<std::string>();
  };
  EXPECT_EQ(description("a cat under a red heart"), "A picture with a red heart");
  EXPECT_EQ(description("no stars, just a moon and 'HI'"),
            "A picture with a yellow moon and the word \"HI\"");
  EXPECT_EQ(description("a red heart"), "a red heart");
}

TEST(DemoLeftOut, PeopleReadCountsInsteadOfAList) {
  const auto summary = [](const std::string& prompt) {
    return demo::caption_from_text(prompt, known_words()).summary;
  };
  EXPECT_EQ(summary("five stars"), "A picture with 4 gold stars");
  EXPECT_EQ(summary("a cat, two red hearts and an orange cross"),
            "A picture with 2 red hearts and an orange cross");
  EXPECT_EQ(summary("a red heart"), "a red heart");
}

TEST(DemoLeftOut, WarnsOfWhatNobodyWillSee) {
  const std::map<std::string, std::string> cases = {
      {"a white heart on white", "the white heart"},
      {"an orange heart on orange", "the orange heart"},
      {"black text \"HI\" on black", "the black word \"HI\""},
      {"a sky blue cloud on light blue", "the sky blue cloud"},
      {"a heart on red", ""},
      {"a white house on white", ""},  // whose roof is red
      {"a white heart on a gradient from white to blue", ""},
      {"a red heart on a red circle", ""}};
  for (const auto& [prompt, what] : cases) {
    const auto warnings = demo::caption_from_text(prompt, known_words()).warnings;
    const std::string end = " can hardly be seen: the background has its colour";
    EXPECT_EQ(joined(warnings, "; "), what.empty() ? "" : what + end) << prompt;
  }
}

TEST(DemoLeftOut, RefusalsNameTheLetter) {
  try {
    demo::caption_from_text("a heart and 'Caf\xc3\xa9'", known_words());
    FAIL();
  } catch (const InvalidRequest& error) {
    EXPECT_STREQ(error.what(),
                 "the letter \"\xc3\xa9\" of \"Caf\xc3\xa9\" is none that the demo's model can "
                 "paint, expected only a-z A-Z 0-9 ! ? & % - +");
  }
}

// Prompts at random from words of all kinds. What is painted is read from the caption, so that
// this does not believe the list.
class RandomPrompt {
 public:
  explicit RandomPrompt(unsigned seed) : random_(seed) {
    const int parts = 1 + pick(6);
    for (int i = 0; i < parts; ++i) {
      if (i > 0) text_ += one_of({" and ", ", ", " with ", " or ", "; ", " in ", " on ", " "});
      add_part();
    }
  }

  const std::string& text() const { return text_; }

  void check() const {
    demo::WrittenCaption written;
    try {
      written = demo::caption_from_text(text_, known_words());
    } catch (const InvalidRequest&) {
      return;  // all of it is
    }
    const std::string left_out = joined(written.left_out, ", ");
    const auto is_named = [&](const std::string& word) {
      return left_out.find(word) != left_out.npos;
    };
    const json elements = elements_of(written);
    for (const std::string& word : unknown_) {
      EXPECT_TRUE(is_named(word)) << word << " of: " << text_ << "\nleft out: " << left_out;
    }
    for (const auto& [noun, count] : things_) {
      size_t painted = 0;
      for (const json& element : elements) {
        painted += element["desc"].get<std::string>().ends_with(" " + noun) ? 1 : 0;
      }
      EXPECT_TRUE(painted >= count || is_named(noun)) << noun << " of: " << text_ << "\n"
                                                      << written.caption;
    }
    for (const auto& [colour, count] : colours_) {
      size_t painted = 0;
      for (const json& element : elements) {
        const std::string desc = element["desc"];
        painted += desc.find(" " + colour + " ") != desc.npos ? 1 : 0;
      }
      const std::string hex = demo::hexadecimal(known_words().names.at(colour));
      const bool is_there = painted > 0 || written.caption.find(hex) != std::string::npos;
      EXPECT_TRUE(is_there || is_named(colour)) << colour << " of: " << text_ << "\n"
                                                << written.caption;
    }
  }

 private:
  int pick(int count) { return std::uniform_int_distribution(0, count - 1)(random_); }
  std::string one_of(const std::vector<std::string>& list) {
    return list[static_cast<size_t>(pick(static_cast<int>(list.size())))];
  }

  void add(const std::string& word) {
    if (!text_.empty() && text_.back() != ' ') text_ += ' ';
    text_ += word;
  }
  void add_unknown(const std::string& word) {
    unknown_.push_back(word);
    add(word);
  }

  void add_part() {
    static const std::map<std::string, size_t> kCounts = {{"a", 1},     {"the", 1},  {"two", 2},
                                                          {"three", 3}, {"five", 5}, {"17", 17}};
    size_t count = 1;
    if (pick(3) > 0) {
      const auto chosen = std::next(kCounts.begin(), pick(static_cast<int>(kCounts.size())));
      add(chosen->first);
      count = chosen->first == "the" ? 0 : chosen->second;  // may be one named before
    }
    if (pick(4) == 0) add_unknown(one_of({"fluffy", "glossy", "neon", "wooden"}));
    if (pick(4) == 0) add(one_of({"big", "small", "plain"}));
    if (pick(2) == 0) {
      const std::string colour = one_of({"red", "green", "blue", "white", "black"});
      ++colours_[colour];
      add(colour);
    }
    if (pick(3) == 0) {
      add_unknown(one_of({"dog", "castle", "umbrella", "zebra"}));
    } else {
      const std::string noun = one_of({"heart", "star", "moon", "triangle", "boat"});
      things_[noun] = std::max(things_[noun], count);
      add(noun + (count > 1 ? "s" : ""));
    }
    if (pick(4) == 0) add(one_of({"above", "under", "next to", "left of", "in the middle"}));
    if (pick(6) == 0) add_unknown(one_of({"dancing", "quietly", "upstairs", "watercolour"}));
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<std::string> unknown_;
  std::map<std::string, size_t> things_, colours_;
};

TEST(DemoLeftOut, EveryWordOfRandomPromptsIsAccountedFor) {
  for (unsigned seed = 0; seed < 1000 && !::testing::Test::HasFailure(); ++seed) {
    RandomPrompt(seed).check();
  }
}

}  // namespace
}  // namespace octet::test
