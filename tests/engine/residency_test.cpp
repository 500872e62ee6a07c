// Where parts stay, by the memory that is there.
#include "engine/residency.h"

#include <gtest/gtest.h>

#include "engine/prompt_cache.h"
#include "formats/error_message.h"

namespace octet::test {
namespace {

using engine::MemoryAtHand;
using engine::PartNeed;
using engine::plan_residency;

// Billions stand for bytes here: a text encoder of 16, two networks of 10, a decoder of 1.
const std::vector<PartNeed> kParts = {{"text", 16, 2},
                                      {"first", 10, 1, /*runs_often=*/true},
                                      {"second", 10, 1, /*runs_often=*/true},
                                      {"decoder", 1, 1}};

std::string places(const MemoryAtHand& memory, const std::vector<KeepRule>& rules = {}) {
  std::string letters;
  for (const PartPlace& place : plan_residency(kParts, rules, memory)) {
    letters += "dhs"[static_cast<size_t>(place.where)];
  }
  return letters;
}

TEST(Residency, EverythingStaysWhereThereIsRoom) {
  EXPECT_EQ(places({.device = 42, .host = 100, .work = 3}), "dddd");
}

TEST(Residency, NetworksComeFirstThenTheSmallest) {
  EXPECT_EQ(places({.device = 41, .host = 100, .work = 3}), "hddd");
  EXPECT_EQ(places({.device = 26, .host = 100, .work = 3}), "hddd");
  EXPECT_EQ(places({.device = 25, .host = 100, .work = 3}), "hddh");
  EXPECT_EQ(places({.device = 24, .host = 100, .work = 3}), "hdhd");
  EXPECT_EQ(places({.device = 4, .host = 100, .work = 3}), "hhhh");
}

TEST(Residency, WhatDoesNotFitTheHostStaysInItsFiles) {
  EXPECT_EQ(places({.device = 26, .host = 15, .work = 3}), "sddd");
  EXPECT_EQ(places({.device = 4, .host = 10, .work = 3}), "shss");
}

TEST(Residency, AHostsOwnMemoryIsTheDevice) {
  EXPECT_EQ(places({.device = 26, .host = 100, .shared = true, .work = 3}), "sddd");
  EXPECT_EQ(places({.device = 4, .host = 100, .shared = true, .work = 3}), "sdds")
      << "networks stay: to stream them would be of no use";
}

TEST(Residency, RulesAreNotQuestioned) {
  EXPECT_EQ(places({.device = 1, .host = 1}, {{"", Residency::device}}), "dddd");
  EXPECT_EQ(
      places({.device = 99, .host = 1}, {{"", Residency::streamed}, {"first", Residency::host}}),
      "shss");
  EXPECT_ERROR_WITH(engine::check_rules({{"third", Residency::host}}, kParts),
                    "expected one of text, first, second, decoder");
}

TEST(PromptCache, KeepsTheLastOnes) {
  engine::PromptCache cache;
  const auto features = [](size_t count) {
    return std::make_shared<const engine::EncodedText>(
        engine::EncodedText{.features = UnsetVector<float>(count, 1.0f)});
  };
  for (int i = 0; i < 20; ++i) cache.add({i}, features(10));
  EXPECT_EQ(cache.find({3}), nullptr);
  ASSERT_NE(cache.find({4}), nullptr);
  EXPECT_EQ(cache.find({4})->features.size(), 10u);
  cache.add({99}, features(10));
  EXPECT_EQ(cache.find({5}), nullptr) << "the one that was not used for longest";
  EXPECT_NE(cache.find({4}), nullptr);
  cache.add({100}, features(size_t{65} << 20));  // more than the whole is to hold
  EXPECT_NE(cache.find({100}), nullptr);
  EXPECT_EQ(cache.find({99}), nullptr);
}

}  // namespace
}  // namespace octet::test
