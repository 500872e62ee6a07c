#include <gtest/gtest.h>

#include <string>

#include "audit/patterns.h"

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

}  // namespace
}  // namespace octet::audit
