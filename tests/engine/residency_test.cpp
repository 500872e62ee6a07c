// Where parts stay, by the memory that is there.
#include "engine/residency.h"

#include <gtest/gtest.h>

#include "engine/prompt_cache.h"
#include "formats/error_message.h"

namespace octet::test {
namespace {

using engine::DevicePlan;
using engine::MemoryAtHand;
using engine::PartNeed;
using engine::plan_residency;

// Billions stand for bytes here: a text encoder of 16, two networks of ten layers, and of a unit
// that only prepares, a decoder of 1.
PartNeed part_of(std::string name, std::vector<uint64_t> units) {
  PartNeed need{.name = std::move(name), .units = {}};
  for (const uint64_t bytes : units) need.units.push_back({bytes});
  return need;
}

PartNeed network_of(std::string name, int visits = 1, int layers = 10) {
  PartNeed need = part_of(std::move(name), std::vector<uint64_t>(static_cast<size_t>(layers), 10));
  need.units.push_back({.bytes = 4, .prepares = true});
  need.visits = visits;
  return need;
}

const std::vector<PartNeed> kParts = {part_of("text", std::vector<uint64_t>(8, 20)),
                                      network_of("first"), network_of("second"),
                                      part_of("decoder", {10})};

std::string places(const DevicePlan& plan) {
  std::string letters;
  for (const PartPlace& place : plan.places) letters += "dhs"[static_cast<size_t>(place.where)];
  return letters;
}
std::string places(const MemoryAtHand& memory, const std::vector<KeepRule>& rules = {}) {
  return places(plan_residency(kParts, rules, memory));
}

// Units of one part after the other.
std::string units(const DevicePlan& plan, size_t part) {
  std::string letters;
  for (const Residency where : plan.units[part]) letters += "dhs"[static_cast<size_t>(where)];
  return letters;
}

TEST(Residency, EverythingStaysWhereThereIsRoom) {
  const DevicePlan plan = plan_residency(kParts, {}, {.device = 408, .host = 999, .work = 30});
  EXPECT_EQ(places(plan), "dddd");
  EXPECT_EQ(plan.buffers, 0);
  EXPECT_EQ(plan.streamed_bytes, 0u);
}

TEST(Residency, NetworksComeFirstThenTheSmallest) {
  EXPECT_EQ(places({.device = 407, .host = 999, .work = 30}), "hddd");
  EXPECT_EQ(places({.device = 248, .host = 999, .work = 30}), "hddd");
  EXPECT_EQ(places({.device = 247, .host = 999, .work = 30}), "hddh");
}

// 238 is what both take, with the work: one layer less has to leave room for the buffers.
TEST(Residency, LayersShareWhatIsThere) {
  const MemoryAtHand memory{.device = 237, .host = 999, .work = 30};
  const DevicePlan plan = plan_residency(kParts, {}, memory);
  EXPECT_EQ(places(plan), "hhhh");
  EXPECT_EQ(plan.buffers, 3);
  EXPECT_EQ(plan.buffer_bytes, 10u);
  EXPECT_EQ(units(plan, 1) + units(plan, 2), "ddddddhdddhdddhdddddhh")
      << "evenly over the step, and what prepares waits with the host";
  EXPECT_EQ(plan.streamed_bytes, 30u);
  EXPECT_EQ(plan.taken, 30u + 30u + 170u);
}

TEST(Residency, NoBudgetIsExceededNorWasted) {
  for (uint64_t device = 60; device <= 237; ++device) {
    const DevicePlan plan = plan_residency(kParts, {}, {.device = device, .host = 999, .work = 30});
    EXPECT_LE(plan.taken, device);
    EXPECT_GT(plan.taken + 10, device) << "a layer more would fit";
    EXPECT_GE(device, plan.least);
  }
}

TEST(Residency, FewerBuffersWhereMemoryIsShort) {
  const auto plan_with = [&](uint64_t device) {
    return plan_residency(kParts, {}, {.device = device, .host = 999, .work = 30});
  };
  EXPECT_EQ(plan_with(60).buffers, 3);
  EXPECT_EQ(plan_with(59).buffers, 2);
  EXPECT_EQ(plan_with(49).buffers, 1);
  EXPECT_EQ(plan_with(49).least, 40u);
}

// What is done around the steps borrows the buffers' memory, and the steps' own.
TEST(Residency, OtherWorkIsReserved) {
  const auto taken = [&](uint64_t other) {
    return plan_residency(kParts, {}, {.device = 200, .host = 999, .work = 30, .other_work = other})
        .taken;
  };
  EXPECT_EQ(taken(0), 200u);
  EXPECT_EQ(taken(40), 200u) << "40 and a layer of the text encoder in the place of 30 and buffers";
  EXPECT_EQ(taken(60), 180u);
}

// It passes before the others come.
TEST(Residency, WhatPreparesNeedsRoomToo) {
  PartNeed network = network_of("only");
  network.units.back().bytes = 45;
  const DevicePlan plan = plan_residency({network}, {}, {.device = 100, .host = 999, .work = 30});
  EXPECT_EQ(plan.least, 75u);
  EXPECT_EQ(units(plan, 0), "dhhhhdhhhhh");
}

// It comes whole, in pieces that land elsewhere first, before it is moved to its buffer.
TEST(Residency, WhatIsReadFromFilesNeedsRoomToLand) {
  const MemoryAtHand memory{.device = 100, .host = 0, .work = 30, .landing = 5};
  const DevicePlan plan = plan_residency({network_of("only")}, {}, memory);
  EXPECT_EQ(plan.least, 30u + 10 + 10 + 5);
  EXPECT_LE(plan.taken, 100u);
  MemoryAtHand with_host = memory;
  with_host.host = 999;
  EXPECT_EQ(plan_residency({network_of("only")}, {}, with_host).least, 30u + 10);
}

TEST(Residency, LayersThatAStepVisitsTwiceStay) {
  const DevicePlan plan = plan_residency({network_of("once"), network_of("twice", 2)}, {},
                                         {.device = 160, .host = 999, .work = 30});
  EXPECT_EQ(units(plan, 0), "hhhhhhhhhhh");
  EXPECT_EQ(units(plan, 1), "ddddddddddh");
  EXPECT_EQ(plan.streamed_bytes, 100u);
}

TEST(Residency, SmallUnitsStayInAnyCase) {
  PartNeed network = network_of("only");
  network.units.insert(network.units.begin(), {.bytes = 0});
  const DevicePlan plan = plan_residency({network}, {}, {.device = 60, .host = 999, .work = 30});
  EXPECT_EQ(units(plan, 0), "dhhhhhhhhhhh");
}

TEST(Residency, WhatIsUsedOnceIsNotKept) {
  std::vector<PartNeed> once = kParts;
  for (PartNeed& part : once) part.once = true;
  const DevicePlan plan = plan_residency(once, {}, {.device = 130, .host = 999, .work = 30});
  EXPECT_EQ(units(plan, 0), "ssssssss");
  EXPECT_EQ(units(plan, 1).back(), 's');
}

TEST(Residency, WhatDoesNotFitTheHostStaysInItsFiles) {
  EXPECT_EQ(places({.device = 248, .host = 15, .work = 30}), "sddd");
  const DevicePlan plan = plan_residency(kParts, {}, {.device = 60, .host = 104, .work = 30});
  EXPECT_EQ(units(plan, 1) + units(plan, 2), "hshshshshshhshshshshss");
  EXPECT_EQ(plan.streamed_bytes, 200u);
  EXPECT_EQ(plan.read_bytes, 100u);
}

TEST(Residency, AHostsOwnMemoryIsTheDevice) {
  EXPECT_EQ(places({.device = 248, .host = 999, .shared = true, .work = 30}), "sddd");
  const DevicePlan plan =
      plan_residency(kParts, {}, {.device = 150, .host = 999, .shared = true, .work = 30});
  EXPECT_EQ(plan.buffers, 2) << "one is used, and one is read";
  EXPECT_EQ(units(plan, 1) + units(plan, 2), "dsdsdsdsdssdsdsdsdsdss");
  EXPECT_EQ(plan.streamed_bytes, plan.read_bytes);
}

TEST(Residency, RulesAreNotQuestioned) {
  EXPECT_EQ(places({.device = 1, .host = 1}, {{"", Residency::device}}), "dddd");
  EXPECT_EQ(
      places({.device = 999, .host = 1}, {{"", Residency::streamed}, {"first", Residency::host}}),
      "shss");
  const DevicePlan plan =
      plan_residency(kParts, {{"first", Residency::host}}, {.device = 999, .host = 999});
  EXPECT_EQ(plan.streamed_bytes, 100u);
  EXPECT_EQ(plan.buffers, 3);
  EXPECT_ERROR_WITH(engine::check_rules({{"third", Residency::host}}, kParts),
                    "expected one of text, first, second, decoder");
}

TEST(Residency, IsToldInWords) {
  const DevicePlan plan = plan_residency(kParts, {}, {.device = 237, .host = 999, .work = 30});
  EXPECT_EQ(engine::text_of(plan.places),
            "text in host memory, first 9 of 10 layers on the device, 1 in host memory, second 8 "
            "of 10 layers on the device, 2 in host memory, decoder in host memory");
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
