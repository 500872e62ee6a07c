// tune: the finalists under load, where the order of a GPU's kernels changes.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/error_message.h"
#include "tune/tune_support.h"
#include "tune/tuner.h"

namespace octet::tune {
namespace {

using test::FakeDevice;
using test::LogLines;
using Times = std::map<std::string, double>;

// A slice is ten runs of 100 us; nobody is dropped.
TunerOptions short_slices() {
  return {.load_rounds = 4,
          .load_later_drop = 9,
          .load_slice_us = 1000,
          .load_settle_us = 0,
          .load_warm_up_us = 5000};
}

class TunerUnderLoad : public testing::Test {
 protected:
  TunerResult run(const Times& under_load, const TunerOptions& options = short_slices()) {
    std::vector<Candidate> candidates;
    for (const auto& [name, us] : under_load) {
      if (name != "bf16") candidates.push_back({name, static_cast<double>(candidates.size())});
    }
    return find_fastest(candidates, {"bf16"}, device_.measure(), options,
                        device_.measure_under_load(under_load));
  }
  std::string order() const {
    std::string names;
    for (const auto& [name, runs] : device_.slices) names += (names.empty() ? "" : " ") + name;
    return names;
  }

  FakeDevice device_{{{"a", 100}, {"b", 102}, {"c", 105}, {"d", 120}, {"bf16", 200}}};
};

TEST_F(TunerUnderLoad, DecidesAmongTheBest) {
  const TunerResult result = run({{"a", 120}, {"b", 115}, {"c", 118}, {"d", 1}, {"bf16", 260}});
  EXPECT_TRUE(result.under_load);
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.winner_us, 115);
  EXPECT_EQ(result.runner_up, "c");
  EXPECT_EQ(result.runner_up_us, 118);
  EXPECT_EQ(result.reference_us, (Times{{"bf16", 260}}));  // compared with the winner: as loaded
}

// The warm-up, slices forwards and backwards, the reference at the end.
TEST_F(TunerUnderLoad, SlicesAreInterleavedInBothOrders) {
  run({{"a", 120}, {"b", 115}, {"c", 118}, {"d", 1}, {"bf16", 260}});
  EXPECT_EQ(order(), "a a b c c b a a b c c b a bf16");
  EXPECT_EQ(device_.slices[0].second, 50);
  EXPECT_EQ(device_.slices[1].second, 10);
  EXPECT_EQ(device_.slices[2].second, 9);
  EXPECT_EQ(device_.slices.back().second, 5);
}

// Of each two the second counts.
TEST_F(TunerUnderLoad, SlicesBeginWhenTheClockHasSettled) {
  TunerOptions options = short_slices();
  options.load_rounds = 2;
  options.load_settle_us = 300;
  int calls = 0;
  device_.disturb_load = [&](double us, const std::string&) {
    return ++calls % 2 == 0 ? us * 9 : us;  // after the warm-up, what is not to count
  };
  const TunerResult result = run({{"a", 120}, {"b", 115}, {"bf16", 260}}, options);
  EXPECT_EQ(order(), "a a a b b b b a a bf16 bf16");
  EXPECT_EQ(device_.slices[1].second, 3);
  EXPECT_EQ(device_.slices[2].second, 10);
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.winner_us, 115);
  EXPECT_EQ(result.reference_us.at("bf16"), 260);
}

TEST_F(TunerUnderLoad, TakesSoManyFinalistsAndNoMore) {
  TunerOptions options = short_slices();
  options.load_finalists = 2;
  options.load_rounds = 2;
  const TunerResult result =
      run({{"a", 120}, {"b", 119}, {"c", 1}, {"d", 1}, {"bf16", 1}}, options);
  EXPECT_EQ(order(), "a a b b a bf16");
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.runner_up, "a");
}

// The best, a second one of its kind, one of each other kind, and then the rest.
TEST(TunerKinds, OfTheBestKindTwoAreLoaded) {
  const std::vector<Candidate> candidates = {{"a", 1, "wide"}, {"b", 2, "wide"},
                                             {"c", 3, "wide"}, {"d", 4, "tall"},
                                             {"e", 5, "tall"}, {"f", 6, "square"}};
  const std::map<std::string, double> single = {{"a", 100}, {"b", 104}, {"c", 105},
                                                {"d", 101}, {"e", 102}, {"f", 103}};
  const auto slices_with = [&](int finalists) {
    FakeDevice device(single);
    TunerOptions options = short_slices();
    options.load_finalists = finalists;
    options.load_rounds = 1;
    find_fastest(candidates, {}, device.measure(), options, device.measure_under_load(single));
    std::string names;
    for (size_t i = 1; i < device.slices.size(); ++i) names += device.slices[i].first;
    return names;  // without the warm-up
  };
  EXPECT_EQ(slices_with(2), "ab");
  EXPECT_EQ(slices_with(4), "abdf");
  EXPECT_EQ(slices_with(6), "abdfec");
}

// a is behind by 4 % after two rounds and leaves, b and c are close.
TEST_F(TunerUnderLoad, WhoIsCloseGetsMoreSlices) {
  TunerOptions options = short_slices();
  options.load_later_drop = 1.02;
  const TunerResult result = run({{"a", 120}, {"b", 115}, {"c", 116}, {"bf16", 260}}, options);
  EXPECT_EQ(order(), "a a b c c b a b c c b bf16");
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.runner_up, "c");
  device_.slices.clear();
  EXPECT_EQ(run({{"a", 120}, {"b", 115}, {"bf16", 260}}, options).runner_up, "a");
  EXPECT_EQ(order(), "a a b b a bf16");  // nobody is left to compare b with
}

// The early slices of who left may be faster than the late ones of a hot device.
TEST_F(TunerUnderLoad, WhoLeftDoesNotWinInTheEnd) {
  TunerOptions options = short_slices();
  options.load_later_drop = 1.02;
  int slices = 0;
  device_.disturb_load = [&](double us, const std::string&) {
    return ++slices > 1 + 6 ? us * 1.2 : us;
  };
  const TunerResult result = run({{"a", 120}, {"b", 115}, {"c", 116}, {"bf16", 260}}, options);
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.runner_up, "c");
}

// A device that gets slower from slice to slice: as many forwards as backwards take that out.
TEST_F(TunerUnderLoad, ADriftDecidesNothing) {
  TunerOptions options = short_slices();
  options.load_rounds = 2;
  int slices = 0;
  device_.disturb_load = [&](double us, const std::string&) { return us + 2 * ++slices; };
  const TunerResult result = run({{"a", 120}, {"b", 119}, {"bf16", 260}}, options);
  EXPECT_EQ(order(), "a a b b a bf16");  // the first of a is the fastest of all
  EXPECT_EQ(result.winner, "b");
}

TEST_F(TunerUnderLoad, OneDisturbedSliceDecidesNothing) {
  TunerOptions options = short_slices();
  for (const double drop : {9.0, 1.02}) {
    options.load_later_drop = drop;
    int slices_of_b = 0;
    device_.disturb_load = [&](double us, const std::string& name) {
      return name == "b" && ++slices_of_b == 1 ? us * 2 : us;
    };
    EXPECT_EQ(run({{"a", 120}, {"b", 115}, {"c", 118}, {"bf16", 260}}, options).winner, "b");
  }
}

// Nobody leaves after the last round: a slower one that had all of them is ahead of who left.
TEST_F(TunerUnderLoad, TheRunnerUpHadAllRounds) {
  TunerOptions options = short_slices();
  options.load_later_drop = 1.02;
  int slices = 0;
  device_.disturb_load = [&](double us, const std::string& name) {
    const bool late = ++slices > 1 + 6;
    return (late ? us * 1.05 : us) * (late && name == "c" ? 1.1 : 1);
  };
  const TunerResult result = run({{"a", 118}, {"b", 115}, {"c", 116}, {"bf16", 260}}, options);
  EXPECT_EQ(order(), "a a b c c b a b c c b bf16");
  EXPECT_EQ(result.runner_up, "c");
  EXPECT_GT(result.runner_up_us, result.winner_us);
}

// Slices are as long as single runs say, and longer under load.
TEST(TunerBudget, IsEnoughForFourWhoAreClose) {
  FakeDevice device(
      {{"a", 300}, {"b", 301}, {"c", 302}, {"d", 303}, {"bf16", 500}, {"quantize", 30}});
  const TunerResult result = find_fastest(
      {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}, {"quantize", "bf16"}, device.measure(), {},
      device.measure_under_load(
          {{"a", 375}, {"b", 374}, {"c", 373}, {"d", 372}, {"bf16", 700}, {"quantize", 30}}));
  EXPECT_EQ(result.winner, "d");
  EXPECT_EQ(result.reference_us, (Times{{"bf16", 700}, {"quantize", 30}}));
}

TEST_F(TunerUnderLoad, ShortRunsAreNotLoaded) {
  TunerOptions options = short_slices();
  options.load_shortest_us = 101;
  const TunerResult result = run({{"a", 120}, {"b", 115}, {"bf16", 260}}, options);
  EXPECT_FALSE(result.under_load);
  EXPECT_TRUE(device_.slices.empty());
  EXPECT_EQ(result.winner, "a");
  EXPECT_EQ(result.winner_us, 100);
  EXPECT_EQ(result.reference_us, (Times{{"bf16", 200}}));
}

TEST_F(TunerUnderLoad, WithoutASecondFinalistThereIsNothingToDecide) {
  const TunerResult result = run({{"a", 120}, {"d", 1}, {"bf16", 260}});
  EXPECT_FALSE(result.under_load);
  EXPECT_TRUE(device_.slices.empty());
  EXPECT_EQ(result.winner, "a");
}

TEST_F(TunerUnderLoad, ADeviceThatCannotIsDecidedByTheFinal) {
  const TunerResult result = find_fastest({{"a", 1}, {"b", 2}}, {}, device_.measure());
  EXPECT_FALSE(result.under_load);
  EXPECT_EQ(result.winner, "a");
}

// A budget for the warm-up and the first slice of one of two: nobody is chosen by that.
TEST_F(TunerUnderLoad, ALoadCutShortDoesNotCount) {
  TunerOptions options = short_slices();
  options.load_budget_us = 6500;
  const TunerResult result = run({{"a", 120}, {"b", 1}, {"bf16", 260}}, options);
  EXPECT_EQ(order(), "a a");
  EXPECT_FALSE(result.under_load);
  EXPECT_EQ(result.winner, "a");
  EXPECT_EQ(result.winner_us, 100);
}

TEST_F(TunerUnderLoad, TheBudgetMayEndALaterRound) {
  TunerOptions options = short_slices();
  options.load_budget_us = 9000;
  const TunerResult result = run({{"a", 120}, {"b", 110}, {"bf16", 260}}, options);
  EXPECT_EQ(order(), "a a b b");
  EXPECT_TRUE(result.under_load);
  EXPECT_EQ(result.winner, "b");
  EXPECT_TRUE(result.reference_us.empty());  // its time of before is of another clock
}

TEST_F(TunerUnderLoad, AFailureLeavesTheOthers) {
  const LogLines log;
  device_.disturb_load = [](double us, const std::string& name) -> double {
    if (name == "b") fail("fell off the bus");
    return name == "bf16" ? std::nan("") : us;
  };
  const TunerResult three = run({{"a", 120}, {"b", 1}, {"c", 118}, {"bf16", 260}});
  EXPECT_TRUE(three.under_load);
  EXPECT_EQ(three.winner, "c");
  EXPECT_EQ(three.runner_up, "a");
  EXPECT_TRUE(three.reference_us.empty());
  EXPECT_EQ(log.count_with("b is left out: fell off the bus"), 1u) << log.all();
  const TunerResult two = run({{"a", 120}, {"b", 1}, {"bf16", 260}});
  EXPECT_FALSE(two.under_load);  // one alone is compared with nobody
  EXPECT_EQ(two.winner, "a");
  EXPECT_EQ(two.winner_us, 100);
}

TEST_F(TunerUnderLoad, NobodyMayBeLeftForIt) {
  device_.disturb = [](double us, const std::string&, int turn) -> double {
    if (turn >= 20) fail("fell off the bus");
    return us;
  };
  EXPECT_ERROR_WITH(run({{"a", 120}, {"b", 115}, {"bf16", 260}}), "fell off the bus");
  EXPECT_TRUE(device_.slices.empty());
}

TEST_F(TunerUnderLoad, OptionsWithoutSenseAreRefused) {
  TunerOptions options;
  options.load_drop = 0.5;
  EXPECT_ERROR_WITH(run({{"a", 1}}, options), "load_drop is 0.5, expected at least 1");
  options = {};
  options.load_finalists = 0;
  EXPECT_ERROR_WITH(run({{"a", 1}}, options), "load_finalists is 0");
  options = {};
  options.load_later_drop = 0.9;
  EXPECT_ERROR_WITH(run({{"a", 1}}, options), "load_later_drop is 0.9, expected at least 1");
}

}  // namespace
}  // namespace octet::tune
