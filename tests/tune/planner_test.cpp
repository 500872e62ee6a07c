// tune: where plans come from, in which order, and what happens when a source fails.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "formats/error_message.h"
#include "tune/planner_fixture.h"

namespace octet::tune {
namespace {

using octet::test::contains;
using octet::test::error_of;
using test::LogLines;
using test::PlannerTest;
using test::some_header;
using test::some_problem;
using Source = GemmPlan::Source;

TEST_F(PlannerTest, AMissingPlanIsTunedOnceAndStored) {
  const LogLines log;
  Planner first = planner(TuneMode::missing);
  EXPECT_EQ(first.find(some_problem()), nullptr);
  const GemmPlan& plan = choose(first);
  EXPECT_EQ(plan.source, Source::tuned);
  EXPECT_EQ(plan.kernel, "fastest");
  EXPECT_EQ(plan.us, 10);
  EXPECT_EQ(plan.runner_up, "other");
  EXPECT_EQ(plan.runner_up_us, 11);
  EXPECT_EQ(plan.reference_us, (std::map<std::string, double>{{kUnquantized, 20}}));
  EXPECT_EQ(plan.date.size(), 20u);
  EXPECT_EQ(&choose(first), &plan);
  EXPECT_EQ(first.find(some_problem()), &plan);
  EXPECT_EQ(trials_, 1);
  EXPECT_EQ(log.count(), 0u) << log.all();
}

TEST_F(PlannerTest, APlanSaysThatItWasMeasuredUnderLoad) {
  TunerOptions options;
  options.load_shortest_us = 1;
  Planner loaded(PlanCache(path_, some_header()), TuneMode::missing, options);
  const auto begin = [&] {
    Trial trial = this->trial()();
    trial.under_load =
        device_.measure_under_load({{"fastest", 14}, {"other", 13}, {kUnquantized, 25}});
    return trial;
  };
  options.load_drop = 1.15;
  Planner wider(PlanCache(path_, some_header()), TuneMode::missing, options);
  EXPECT_FALSE(loaded.choose(some_problem(), candidates_, begin).under_load);  // 10 % apart
  const GemmPlan& plan = wider.choose(some_problem(7), candidates_, begin);
  EXPECT_TRUE(plan.under_load);
  EXPECT_EQ(plan.kernel, "other");
  EXPECT_EQ(plan.us, 13);
  EXPECT_EQ(plan.runner_up_us, 14);
  EXPECT_EQ(plan.reference_us.at(kUnquantized), 25);
  test::expect_equal(*test::plan_in(path_, some_problem(7)), plan);
}

TEST_F(PlannerTest, ASecondProcessMakesTheSameChoiceWithoutMeasuring) {
  Planner first = planner(TuneMode::missing);
  const GemmPlan tuned = choose(first);
  const size_t runs = device_.runs.size();
  for (const TuneMode mode : {TuneMode::missing, TuneMode::off}) {
    Planner second = planner(mode);
    const GemmPlan& plan = choose(second);
    EXPECT_EQ(plan.source, Source::file);
    test::expect_equal(plan, tuned);
  }
  EXPECT_EQ(trials_, 1);
  EXPECT_EQ(device_.runs.size(), runs);
}

TEST_F(PlannerTest, EveryProblemHasItsOwnPlan) {
  Planner first(PlanCache(), TuneMode::missing);
  std::vector<const GemmPlan*> plans;
  for (int64_t m = 1; m <= 200; ++m) plans.push_back(&choose(first, some_problem(m)));
  GemmProblem without_bias = some_problem(1);
  without_bias.fusion = Fusion::none;
  choose(first, without_bias);
  EXPECT_EQ(trials_, 201);
  // The first references are still good after the map has grown.
  for (int64_t m = 1; m <= 200; ++m) {
    EXPECT_EQ(&choose(first, some_problem(m)), plans[static_cast<size_t>(m - 1)]);
    EXPECT_EQ(plans[static_cast<size_t>(m - 1)]->kernel, "fastest");
  }
  EXPECT_EQ(trials_, 201);
}

TEST_F(PlannerTest, OffTakesTheEstimateAndStoresNothing) {
  Planner off = planner(TuneMode::off);
  const GemmPlan& plan = choose(off);
  EXPECT_EQ(plan.kernel, "estimated");
  EXPECT_EQ(plan.source, Source::estimate);
  EXPECT_EQ(plan.us, 0);
  EXPECT_EQ(plan.date, "");
  EXPECT_EQ(trials_, 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Those who must not wait ask beforehand.
TEST_F(PlannerTest, SaysWhetherItWouldMeasure) {
  const auto would = [&](Planner& asked) {
    return asked.would_measure(some_problem(), candidates_);
  };
  Planner off = planner(TuneMode::off), first = planner(TuneMode::missing);
  EXPECT_FALSE(would(off));
  EXPECT_TRUE(would(first));
  choose(first);
  EXPECT_FALSE(would(first));
  Planner second = planner(TuneMode::missing), all = planner(TuneMode::all);
  EXPECT_FALSE(would(second));
  EXPECT_TRUE(would(all));
  candidates_.pop_back();  // the kernel of the file
  const LogLines log;
  Planner without = planner(TuneMode::missing);
  EXPECT_TRUE(would(without));
  EXPECT_EQ(trials_, 1);
}

TEST_F(PlannerTest, AProblemTakesThePlanOfAnother) {
  const GemmProblem one = some_problem(), other = some_problem(7);
  const auto adopts = [&](TuneMode mode) {
    Planner asked = planner(mode);
    return asked.adopt(one, other, candidates_) != nullptr;
  };
  EXPECT_FALSE(adopts(TuneMode::missing));  // nobody has one
  Planner first = planner(TuneMode::missing);
  choose(first, other);
  const GemmPlan* plan = first.adopt(one, other, candidates_);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->kernel, "fastest");
  EXPECT_EQ(&choose(first, one), plan);
  EXPECT_EQ(first.adopt(one, other, candidates_), nullptr);  // it has its own now
  EXPECT_FALSE(first.would_measure(one, candidates_));
  EXPECT_EQ(trials_, 1);
  EXPECT_TRUE(adopts(TuneMode::missing));  // from the file, which has the other's alone
  EXPECT_TRUE(adopts(TuneMode::off));
  EXPECT_FALSE(adopts(TuneMode::all));
  const std::vector<Candidate> without = {candidates_.begin(), candidates_.end() - 1};
  EXPECT_EQ(planner(TuneMode::missing).adopt(one, other, without), nullptr);
  PlanCache(path_, some_header()).store(one, test::some_plan("other"));
  EXPECT_FALSE(adopts(TuneMode::missing));
}

// An estimate is nobody else's.
TEST_F(PlannerTest, OnlyMeasuredPlansAreTaken) {
  Planner off = planner(TuneMode::off);
  choose(off, some_problem(7));
  EXPECT_EQ(off.adopt(some_problem(), some_problem(7), candidates_), nullptr);
}

TEST_F(PlannerTest, AllMeasuresOncePerProcessAlthoughTheFileHasIt) {
  PlanCache(path_, some_header()).store(some_problem(), test::some_plan("other"));
  Planner all = planner(TuneMode::all);
  EXPECT_EQ(choose(all).source, Source::tuned);
  EXPECT_EQ(choose(all).kernel, "fastest");
  EXPECT_EQ(trials_, 1);
  EXPECT_EQ(test::plan_in(path_, some_problem())->kernel, "fastest");
}

TEST_F(PlannerTest, AKernelThatIsNotOfferedIsTunedAgain) {
  PlanCache(path_, some_header()).store(some_problem(), test::some_plan("of_the_past"));
  LogLines log;
  Planner off = planner(TuneMode::off);
  EXPECT_EQ(choose(off).kernel, "estimated");
  EXPECT_EQ(log.count(), 1u) << log.all();
  EXPECT_EQ(log.count_with("of_the_past"), 1u);
  EXPECT_EQ(trials_, 0);
  log.clear();
  Planner missing = planner(TuneMode::missing);
  EXPECT_EQ(choose(missing).kernel, "fastest");
  EXPECT_EQ(log.count(), 1u) << log.all();
  EXPECT_EQ(test::plan_in(path_, some_problem())->kernel, "fastest");
}

TEST_F(PlannerTest, AFailedTrialLeavesTheEstimate) {
  int trials = 0;
  const std::vector<std::function<Trial()>> failures = {
      [&]() -> Trial { ++trials, fail("out of device memory"); },
      [&]() -> Trial { ++trials, throw std::bad_alloc(); },
      [&] {
        ++trials;
        return Trial{[](const std::string&, int) -> double { fail("out of device memory"); }, {}};
      },
  };
  for (const auto& failing : failures) {
    const LogLines log;
    Planner missing = planner(TuneMode::missing);
    for (int call = 0; call < 3; ++call) {
      const GemmPlan& plan = missing.choose(some_problem(), candidates_, failing);
      EXPECT_EQ(plan.kernel, "estimated");
      EXPECT_EQ(plan.source, Source::estimate);
    }
    EXPECT_EQ(log.count(log::Level::warning), 1u) << log.all();
    EXPECT_EQ(log.count_with("tuning m512 n4608 k4608 BF16+bias rows failed"), 1u) << log.all();
    EXPECT_EQ(log.count_with("memory"), trials == 3 ? 4u : 1u) << log.all();  // 3 in debug lines
  }
  EXPECT_EQ(trials, 3);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PlannerTest, AFailedTrialOfAllKeepsTheMeasurementOfTheFile) {
  PlanCache(path_, some_header()).store(some_problem(), test::some_plan("other"));
  Planner all = planner(TuneMode::all);
  const GemmPlan& plan =
      all.choose(some_problem(), candidates_, []() -> Trial { fail("out of device memory"); });
  EXPECT_EQ(plan.kernel, "other");
  EXPECT_EQ(plan.source, Source::file);
}

TEST_F(PlannerTest, TheTrialIsGoneAfterwards) {
  std::weak_ptr<int> buffers;
  bool lived_during_runs = true;
  Planner missing = planner(TuneMode::missing);
  missing.choose(some_problem(), candidates_, [&] {
    auto owned = std::make_shared<int>(0);
    buffers = owned;
    return Trial{[&, owned](const std::string&, int) {
                   lived_during_runs = lived_during_runs && !buffers.expired();
                   return 1.0;
                 },
                 {}};
  });
  EXPECT_TRUE(lived_during_runs);
  EXPECT_TRUE(buffers.expired());
}

TEST_F(PlannerTest, NoCandidateIsAnErrorWithTheProblem) {
  Planner missing = planner(TuneMode::missing);
  EXPECT_ERROR_WITH(missing.choose(some_problem(), {}, trial()),
                    "no kernel of this backend fits m512 n4608 k4608 BF16+bias rows");
  EXPECT_EQ(trials_, 0);
  EXPECT_EQ(missing.find(some_problem()), nullptr);
}

TEST_F(PlannerTest, WithoutAFilePlansLiveInMemory) {
  const LogLines log;
  Planner missing(PlanCache(), TuneMode::missing);
  EXPECT_EQ(choose(missing).kernel, "fastest");
  EXPECT_EQ(choose(missing).kernel, "fastest");
  EXPECT_EQ(trials_, 1);
  EXPECT_EQ(log.count(), 0u) << log.all();
}

TEST_F(PlannerTest, ADeletedFileIsMeasuredAnew) {
  Planner first = planner(TuneMode::missing);
  choose(first, some_problem(1));
  choose(first, some_problem(2));
  std::filesystem::remove_all(folder_.file("plans"));
  const LogLines log;
  choose(first, some_problem(3));  // brings back what this process has measured
  for (int64_t m = 1; m <= 3; ++m) EXPECT_TRUE(test::plan_in(path_, some_problem(m))) << m;
  std::filesystem::remove_all(folder_.file("plans"));
  Planner second = planner(TuneMode::missing);
  EXPECT_EQ(choose(second, some_problem(1)).source, Source::tuned);
  EXPECT_EQ(log.count(), 0u) << log.all();
}

}  // namespace
}  // namespace octet::tune
