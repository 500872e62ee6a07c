#include "audit/glob.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace octet::audit {
namespace {

TEST(Glob, TextWithoutSignsIsTheWholeText) {
  EXPECT_TRUE(matches_glob("aten::mm", "aten::mm"));
  EXPECT_FALSE(matches_glob("aten::mm", "aten::mm_"));
  EXPECT_FALSE(matches_glob("aten::mm", "aten::m"));
  EXPECT_FALSE(matches_glob("aten::mm", "Aten::mm"));
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_FALSE(matches_glob("", "a"));
}

TEST(Glob, StarsAreAnyText) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("**", "abc"));
  EXPECT_TRUE(matches_glob("a*c", "ac"));
  EXPECT_TRUE(matches_glob("a*c", "abcbc"));
  EXPECT_FALSE(matches_glob("a*c", "abcb"));
  EXPECT_TRUE(
      matches_glob("*gemm_s8*", "cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16"));
  EXPECT_FALSE(matches_glob("*gemm_s8*", "ampere_s16816gemm_fp16_128x128"));
  EXPECT_TRUE(matches_glob("*a*b*a", "xaybza"));
  EXPECT_FALSE(matches_glob("*a*b*a", "xab"));
}

// The head and the tail may not share characters.
TEST(Glob, PiecesDoNotOverlap) {
  EXPECT_FALSE(matches_glob("ab*ba", "aba"));
  EXPECT_TRUE(matches_glob("ab*ba", "abba"));
  EXPECT_FALSE(matches_glob("*ab*ab*", "xaba"));
}

TEST(Glob, QuestionMarksAndSetsAreOneCharacter) {
  EXPECT_TRUE(matches_glob("v?", "v1"));
  EXPECT_FALSE(matches_glob("v?", "v"));
  EXPECT_TRUE(matches_glob("gemm_sm[89]0", "gemm_sm90"));
  EXPECT_FALSE(matches_glob("gemm_sm[89]0", "gemm_sm70"));
  EXPECT_TRUE(matches_glob("*copy_[0-9]*", "triton_poi_fused__to_copy_12"));
  EXPECT_FALSE(matches_glob("*copy_[0-9]*", "triton_poi_fused__to_copy_add"));
  EXPECT_TRUE(matches_glob("[a-cx]", "x"));
  EXPECT_FALSE(matches_glob("[a-cx]", "d"));
  EXPECT_TRUE(matches_glob("[a-]", "-"));
  EXPECT_TRUE(matches_glob("*[tT]op[kK]", "gatherTopK"));
  EXPECT_FALSE(matches_glob("[]", "]"));
  EXPECT_TRUE(matches_glob("[[]CUDA*", "[CUDA memset]"));
}

TEST(Glob, AnUnclosedSetIsItself) {
  EXPECT_TRUE(matches_glob("a[b", "a[b"));
  EXPECT_FALSE(matches_glob("a[b", "ab"));
}

// What takes exponential time where stars are tried again.
TEST(Glob, ManyStarsEnd) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(20'000, 'a')));
  EXPECT_TRUE(matches_glob(pattern, std::string(20'000, 'a')));
  EXPECT_FALSE(matches_glob("*a?a[ab]b*c", std::string(100'000, 'a')));
}

TEST(Glob, AnyBytes) {
  const std::string bytes("\x00\xff*[?", 5);
  EXPECT_TRUE(matches_glob("*", bytes));
  EXPECT_TRUE(matches_glob("?????", bytes));
  EXPECT_FALSE(matches_glob("????", bytes));
}

std::optional<size_t> first_by_one(const std::vector<std::string>& patterns,
                                   const std::string& text) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (matches_glob(patterns[i], text)) return i;
  }
  return std::nullopt;
}

TEST(Glob, ASetFindsTheFirstThatFits) {
  const std::vector<std::string> patterns = {"*he*she*", "*she*", "he", "*[0-9]rs", "h?r*", "**"};
  const GlobSet set(patterns);
  EXPECT_EQ(set.first_match("ushers"), 1u);
  EXPECT_EQ(set.first_match("he is she"), 0u);
  EXPECT_EQ(set.first_match("he"), 2u);
  EXPECT_EQ(set.first_match("1rs"), 3u);
  EXPECT_EQ(set.first_match("her"), 4u);
  EXPECT_EQ(set.first_match(""), 5u);
  EXPECT_EQ(GlobSet({"*a*"}).first_match("b"), std::nullopt);
  EXPECT_EQ(GlobSet({}).first_match("b"), std::nullopt);
}

TEST(Glob, ASetIsTheSameAsOneAfterTheOther) {
  std::mt19937 random(7);
  const auto text_of = [&](const std::string& letters, size_t most) {
    std::string text(random() % (most + 1), ' ');
    for (char& letter : text) letter = letters[random() % letters.size()];
    return text;
  };
  size_t fits = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> patterns(1 + random() % 8);
    for (std::string& pattern : patterns) pattern = text_of("aabbc**?[]", 9);
    const GlobSet set(patterns);
    for (int i = 0; i < 50; ++i) {
      const std::string text = text_of("aaabbc[", 12);
      const auto want = first_by_one(patterns, text);
      ASSERT_EQ(set.first_match(text), want) << text;
      fits += want.has_value();
    }
  }
  EXPECT_GT(fits, 500u);
}

}  // namespace
}  // namespace octet::audit
