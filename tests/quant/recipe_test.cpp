// Recipes and protections as users write them.
#include "quant/recipe.h"

#include <gtest/gtest.h>

#include "formats/error_message.h"

namespace octet::test {
namespace {

TEST(Recipe, Words) {
  EXPECT_EQ(parse_recipe("rowwise"), Recipe{.kind = Recipe::Kind::rowwise});
  EXPECT_EQ(parse_recipe("smoothquant"),
            (Recipe{.kind = Recipe::Kind::smoothquant, .alpha = 0.5f}));
  EXPECT_EQ(parse_recipe("smoothquant:0.75"),
            (Recipe{.kind = Recipe::Kind::smoothquant, .alpha = 0.75f}));
  EXPECT_EQ(parse_recipe("smoothquant:0").alpha, 0.0f);
  EXPECT_EQ(parse_recipe("smoothquant:1").alpha, 1.0f);
  EXPECT_EQ(parse_recipe("convrot"), (Recipe{.kind = Recipe::Kind::convrot, .group = 256}));
  for (const int64_t group : {4, 16, 64, 256, 1024}) {
    EXPECT_EQ(parse_recipe("convrot:" + std::to_string(group)).group, group);
  }
}

TEST(Recipe, IsSaidAsItIsRead) {
  for (const std::string text : {"rowwise", "smoothquant:0.6", "convrot:16"}) {
    EXPECT_EQ(to_string(parse_recipe(text)), text);
  }
}

TEST(Recipe, OtherWordsAreRefused) {
  for (const std::string text : {"",
                                 "Rowwise",
                                 "rowwise ",
                                 "rowwise:",
                                 "rowwise:1",
                                 "awq",
                                 "smoothquant:",
                                 "smoothquant:a",
                                 "smoothquant:1.01",
                                 "smoothquant:-0.1",
                                 "smoothquant:nan",
                                 "smoothquant:inf",
                                 "smoothquant:0.5x",
                                 "smoothquant:0.5:1",
                                 "convrot:",
                                 "convrot:0",
                                 "convrot:-4",
                                 "convrot:1",
                                 "convrot:2",
                                 "convrot:8",
                                 "convrot:32",
                                 "convrot:4096",
                                 "convrot:64.0",
                                 "convrot: 64",
                                 "convrot:99999999999999999999",
                                 "\n"}) {
    SCOPED_TRACE(text);
    const std::string message = error_of([&] { parse_recipe(text); });
    EXPECT_TRUE(message.starts_with("recipe: ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "text of the user came through raw";
  }
}

TEST(Recipe, GroupThatDividesTheChannels) {
  const Recipe recipe = parse_recipe("convrot:256");
  EXPECT_EQ(quant::group_for(recipe, 4608), 256);
  EXPECT_EQ(quant::group_for(recipe, 192), 64);
  EXPECT_EQ(quant::group_for(recipe, 48), 16);
  EXPECT_EQ(quant::group_for(recipe, 20), 4);
  EXPECT_EQ(quant::group_for(recipe, 6), 0);
  EXPECT_EQ(quant::group_for(parse_recipe("convrot:16"), 4608), 16);
  EXPECT_EQ(quant::group_for(parse_recipe("rowwise"), 4608), 0);
}

TEST(Protection, Words) {
  EXPECT_TRUE(parse_protection("none").patterns.empty());
  EXPECT_EQ(parse_protection("none").worst, 0);
  EXPECT_EQ(parse_protection("auto:17").worst, 17);
  EXPECT_TRUE(parse_protection("auto:17").patterns.empty());
  const Protection list = parse_protection("layers.0.attention.o,layers.*.w2");
  EXPECT_EQ(list.patterns, (std::vector<std::string>{"layers.0.attention.o", "layers.*.w2"}));
  EXPECT_EQ(list.worst, 0);
  for (const std::string text : {"none", "auto:3", "a,b*"}) {
    EXPECT_EQ(to_string(parse_protection(text)), text);
  }
}

TEST(Protection, OtherWordsAreRefused) {
  for (const std::string text : {"auto:", "auto:x", "auto:-1", "auto:1.5", "auto:1,a",
                                 "auto:99999999999999999999", ",", "a,", ",a", "a,,b"}) {
    SCOPED_TRACE(text);
    EXPECT_TRUE(error_of([&] { parse_protection(text); }).starts_with("protect: "));
  }
}

TEST(Protection, Stars) {
  const auto matches = [](const std::string& pattern, const std::string& name) {
    return quant::matches({.patterns = {pattern}}, name);
  };
  EXPECT_TRUE(matches("layers.1.attention.o", "layers.1.attention.o"));
  EXPECT_FALSE(matches("layers.1.attention.o", "layers.11.attention.o"));
  EXPECT_FALSE(matches("layers.1", "layers.1.attention.o"));
  EXPECT_TRUE(matches("*", "layers.1.attention.o"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("layers.1.*", "layers.1.attention.o"));
  EXPECT_FALSE(matches("layers.1.*", "layers.11.attention.o"));
  EXPECT_TRUE(matches("*.w2", "layers.3.feed_forward.w2"));
  EXPECT_FALSE(matches("*.w2", "layers.3.feed_forward.w23"));
  EXPECT_TRUE(matches("layers.*.w2", "layers.3.feed_forward.w2"));
  EXPECT_TRUE(matches("layers.**w2", "layers.3.feed_forward.w2"));
  EXPECT_TRUE(matches("a*b*a", "abba"));
  EXPECT_TRUE(matches("a*ba", "ababa"));  // the last of two places
  EXPECT_FALSE(matches("ab*ba", "aba"));  // texts do not overlap
  EXPECT_FALSE(matches("a*b*c", "acb"));
  // Pairs of stars and texts are not tried in all their ways.
  std::string pattern, name(60, 'a');
  for (int i = 0; i < 25; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "*b", name));
  EXPECT_TRUE(quant::matches({.patterns = {"x", "l*"}}, "layers"));
  EXPECT_FALSE(quant::matches({}, "layers"));
}

TEST(ClipRatios, BeginWithNone) {
  EXPECT_EQ(std::vector<float>(quant::clip_ratios(false).begin(), quant::clip_ratios(false).end()),
            std::vector<float>{1});
  const auto ratios = quant::clip_ratios(true);
  EXPECT_GT(ratios.size(), 1u);
  EXPECT_EQ(ratios.front(), 1);
  for (const float ratio : ratios) EXPECT_TRUE(ratio > 0.5f && ratio <= 1);
}

}  // namespace
}  // namespace octet::test
