#include "base/closest_word.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace octet::test {
namespace {

std::string closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  return std::string(closest_word(word, candidates).value_or("-"));
}

TEST(ClosestWord, FindsMisspeltWords) {
  const std::vector<std::string_view> keys = {"background", "elements", "color_palette", "desc"};
  EXPECT_EQ(closest("backgroud", keys), "background");    // left out
  EXPECT_EQ(closest("backkground", keys), "background");  // added
  EXPECT_EQ(closest("elemints", keys), "elements");       // changed
  EXPECT_EQ(closest("eelments", keys), "elements");       // swapped
  EXPECT_EQ(closest("colour_palette", keys), "color_palette");
  EXPECT_EQ(closest("Color-Palette", keys), "color_palette");
  EXPECT_EQ(closest("description", keys), "desc");
}

TEST(ClosestWord, TakesTheNearestOfSeveral) {
  EXPECT_EQ(closest("tax", {"text", "tax_", "obj"}), "tax_");
  EXPECT_EQ(closest("object", {"obj", "text"}), "obj");
}

TEST(ClosestWord, DoesNotGuess) {
  EXPECT_EQ(closest("canvas", {"background", "elements"}), "-");
  EXPECT_EQ(closest("image", {"obj", "text"}), "-");
  EXPECT_EQ(closest("", {"obj", "text"}), "-");
  EXPECT_EQ(closest("ob", {"obj_of_many"}), "-");  // too short to be a beginning
  EXPECT_EQ(closest("background", {}), "-");
  EXPECT_EQ(closest(std::string(100'000, 'o'), {"obj"}), "-");
}

}  // namespace
}  // namespace octet::test
