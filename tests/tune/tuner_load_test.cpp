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

// A slice is ten runs of 100 us.
TunerOptions short_slices() {
  return {.load_rounds = 4, .load_slice_us = 1000, .load_settle_us = 0, .load_warm_up_us = 5000};
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

TEST_F(TunerUnderLoad, TheBestOfEachKindComesFirst) {
  TunerOptions options = short_slices();
  options.load_finalists = 2;
  options.load_rounds = 2;
  const std::vector<Candidate> candidates = {{"a", 1, "wide"}, {"b", 2, "wide"}, {"c", 3, "tall"}};
  const auto run_with = [&](int finalists) {
    options.load_finalists = finalists;
    device_.slices.clear();
    return find_fastest(candidates, {}, device_.measure(), options,
                        device_.measure_under_load({{"a", 120}, {"b", 1}, {"c", 118}}));
  };
  EXPECT_EQ(run_with(2).winner, "c");
  EXPECT_EQ(order(), "a a c c a");
  EXPECT_EQ(run_with(3).winner, "b");
  EXPECT_EQ(order(), "a a c b b c a");
}

TEST_F(TunerUnderLoad, OneDisturbedSliceDecidesNothing) {
  int slices_of_b = 0;
  device_.disturb_load = [&](double us, const std::string& name) {
    return name == "b" && ++slices_of_b == 1 ? us * 2 : us;
  };
  EXPECT_EQ(run({{"a", 120}, {"b", 115}, {"c", 118}, {"bf16", 260}}).winner, "b");
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

TEST_F(TunerUnderLoad, OptionsWithoutSenseAreRefused) {
  TunerOptions options;
  options.load_drop = 0.5;
  EXPECT_ERROR_WITH(run({{"a", 1}}, options), "load_drop is 0.5, expected at least 1");
  options = {};
  options.load_finalists = 0;
  EXPECT_ERROR_WITH(run({{"a", 1}}, options), "load_finalists is 0");
}

}  // namespace
}  // namespace octet::tune
