// tune: how plans that come with the program, and those that are learnt while it runs, go together
// with the others.
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/error_message.h"
#include "tune/planner_fixture.h"

namespace octet::tune {
namespace {

using test::LogLines;
using test::PlannerTest;
using test::some_header;
using test::some_problem;
using Source = GemmPlan::Source;

// What comes with the program: predicted for one problem, measured for another.
class ShippedPlanner : public PlannerTest {
 protected:
  Planner planner(TuneMode mode) {
    ShippedCard card;
    card.names = {"H200"};
    card.multiprocessors = 132;
    card.is_measured = true;
    card.layout = "rows";
    card.kernels["4608x4608"] = {{4096, "other"}, {64, "of_another_build"}};
    ShippedCard predicted = card;
    predicted.is_measured = false;
    predicted.kernels["4608x4608"] = {{512, "other"}};
    return Planner(PlanCache(path_, some_header()), mode, {},
                   ShippedPlans({card, predicted}, "NVIDIA H200", 132));
  }
  const GemmPlan& at_once(Planner& asked, int64_t m) {
    return asked.choose_at_once(some_problem(m), candidates_);
  }
};

TEST_F(ShippedPlanner, OneThatWasMeasuredForTheProblemReplacesATrial) {
  for (const TuneMode mode : {TuneMode::off, TuneMode::missing}) {
    Planner asked = planner(mode);
    EXPECT_FALSE(asked.would_measure(some_problem(4096), candidates_));
    const GemmPlan& plan = choose(asked, some_problem(4096));
    EXPECT_EQ(plan.kernel, "other");
    EXPECT_EQ(plan.source, Source::shipped);
  }
  EXPECT_EQ(trials_, 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  Planner all = planner(TuneMode::all);
  EXPECT_TRUE(all.would_measure(some_problem(4096), candidates_));
  EXPECT_EQ(choose(all, some_problem(4096)).source, Source::tuned);
}

TEST_F(ShippedPlanner, OthersOnlyReplaceTheEstimate) {
  Planner missing = planner(TuneMode::missing);
  EXPECT_TRUE(missing.would_measure(some_problem(512), candidates_));
  EXPECT_EQ(choose(missing, some_problem(512)).source, Source::tuned);
  EXPECT_EQ(choose(missing, some_problem(4097)).source, Source::tuned);
  EXPECT_EQ(trials_, 2);
  Planner off = planner(TuneMode::off);
  EXPECT_EQ(choose(off, some_problem(513)).source, Source::predicted);
  EXPECT_EQ(choose(off, some_problem(513)).kernel, "other");
  EXPECT_EQ(choose(off, some_problem(4098)).source, Source::shipped);
  EXPECT_EQ(choose(off, some_problem(16)).source, Source::estimate);
}

TEST_F(ShippedPlanner, WhoMustNotWaitGetsWhatIsKnown) {
  Planner missing = planner(TuneMode::missing);
  EXPECT_EQ(at_once(missing, 513).source, Source::predicted);
  EXPECT_EQ(at_once(missing, 4097).source, Source::shipped);
  EXPECT_EQ(at_once(missing, 16).source, Source::estimate);
  EXPECT_FALSE(std::filesystem::exists(path_));
  PlanCache(path_, some_header()).store(some_problem(513), test::some_plan("fastest"));
  Planner second = planner(TuneMode::missing);
  EXPECT_EQ(at_once(second, 513).source, Source::file);
  EXPECT_EQ(at_once(second, 513).kernel, "fastest");
  EXPECT_ERROR_WITH(second.choose_at_once(some_problem(2), {}), "no kernel of this backend fits");
}

TEST_F(ShippedPlanner, AKernelOfAnotherBuildIsPassedOverWithADebugLine) {
  const LogLines log;
  Planner missing = planner(TuneMode::missing);
  EXPECT_EQ(at_once(missing, 64).source, Source::estimate);
  EXPECT_EQ(log.count_with("of_another_build"), 1u) << log.all();
  EXPECT_EQ(log.count(), 0u) << log.all();
}

TEST_F(ShippedPlanner, WhoWantsTimesMeasuresThem) {
  Planner missing = planner(TuneMode::missing);
  EXPECT_EQ(missing.choose_thoroughly(some_problem(4096), candidates_, trial()).source,
            Source::tuned);
  Planner off = planner(TuneMode::off);
  EXPECT_EQ(off.choose_thoroughly(some_problem(512), candidates_, trial()).source,
            Source::predicted);
  EXPECT_EQ(trials_, 1);
}

class LearningPlanner : public PlannerTest {};

TEST_F(LearningPlanner, WhatIsLearntReplacesThePlanAndIsKept) {
  Planner first = planner(TuneMode::missing);
  const GemmPlan& plan = first.choose_at_once(some_problem(), candidates_);
  EXPECT_EQ(plan.kernel, "estimated");
  TunerResult found;
  found.winner = "fastest", found.winner_us = 10, found.runner_up = "other",
  found.runner_up_us = 11;
  first.learn(some_problem(), candidates_, found);
  EXPECT_EQ(plan.kernel, "fastest");  // in its place
  EXPECT_EQ(plan.source, Source::tuned);
  test::expect_equal(*test::plan_in(path_, some_problem()), plan);

  // Good enough for pictures, and in the file for good; whoever asks for times gets all of them.
  Planner second = planner(TuneMode::missing);
  EXPECT_EQ(choose(second).source, Source::file);
  EXPECT_EQ(trials_, 0);
  Planner third = planner(TuneMode::missing);
  const GemmPlan& thorough = third.choose_thoroughly(some_problem(), candidates_, trial());
  EXPECT_EQ(thorough.source, Source::tuned);
  EXPECT_EQ(thorough.reference_us.size(), 1u);
  EXPECT_EQ(trials_, 1);

  // Which nobody replaces by less.
  found.winner = "other";
  first.learn(some_problem(), candidates_, found);
  EXPECT_EQ(plan.kernel, "fastest");
  EXPECT_EQ(plan.source, Source::file);
  EXPECT_EQ(test::plan_in(path_, some_problem())->reference_us.size(), 1u);
  Planner off = planner(TuneMode::off);
  EXPECT_EQ(off.choose_thoroughly(some_problem(), candidates_, trial()).source, Source::file);
  EXPECT_EQ(trials_, 1);
}

// A hasty measurement is better than none.
TEST_F(LearningPlanner, AFailedThoroughTrialKeepsTheHastyPlan) {
  GemmPlan hasty = test::some_plan("other");
  hasty.reference_us.clear();
  PlanCache(path_, some_header()).store(some_problem(), hasty);
  Planner missing = planner(TuneMode::missing);
  const GemmPlan& plan = missing.choose_thoroughly(some_problem(), candidates_,
                                                   []() -> Trial { fail("out of device memory"); });
  EXPECT_EQ(plan.kernel, "other");
  EXPECT_EQ(plan.source, Source::file);
}

}  // namespace
}  // namespace octet::tune
