// What is told of budgets, and of the steps under them.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/error_message.h"
#include "measure/predict/streamed_step.h"
#include "octet/tools/plan.h"
#include "octet/tools/report.h"

namespace octet {
namespace {

using predict::streamed_step;
using predict::StreamedStep;
using predict::UnitRun;

constexpr uint64_t kGb = 1'000'000'000;

TEST(StreamedStep, CopiesHideBehindUnitsThatTakeLonger) {
  // A buffer of 1 ms each: three units of 2 ms, each of which waits for nothing.
  const std::vector<UnitRun> units(3, {.ms = 2, .streamed_bytes = 1'000'000});
  const StreamedStep step = streamed_step(units, 3, 1);
  EXPECT_DOUBLE_EQ(step.ms, 6);
  EXPECT_EQ(step.units.size(), 3u);
}

TEST(StreamedStep, TakesAsLongAsTheBusWhereThatIsLonger) {
  const std::vector<UnitRun> units(10, {.ms = 2, .streamed_bytes = 3'000'000});
  EXPECT_DOUBLE_EQ(streamed_step(units, 3, 1).ms, 30);
  EXPECT_DOUBLE_EQ(streamed_step(units, 3, 3).ms, 20);
}

TEST(StreamedStep, WithOneBufferNothingOverlaps) {
  const std::vector<UnitRun> units(4, {.ms = 2, .streamed_bytes = 3'000'000});
  EXPECT_DOUBLE_EQ(streamed_step(units, 1, 1).ms, 20);
}

TEST(StreamedStep, UnitsThatStayGiveCopiesTheirTime) {
  std::vector<UnitRun> units(8, {.ms = 2});
  for (const size_t i : {3, 7}) units[i].streamed_bytes = 8'000'000;
  EXPECT_DOUBLE_EQ(streamed_step(units, 2, 1).ms, 16);
  EXPECT_TRUE(streamed_step(std::vector<UnitRun>(3, {.ms = 2}), 0, 1).copies.empty());
}

TEST(StreamedStep, NoTwoCopiesRunAtATimeAndNoUnitBeforeItsWeights) {
  std::vector<UnitRun> units(34, {.ms = 2});
  for (size_t i = 0; i < units.size(); i += 3) units[i].streamed_bytes = 5'000'000;
  const StreamedStep step = streamed_step(units, 3, 1);
  EXPECT_EQ(step.copies.size(), 12u);
  for (size_t i = 1; i < step.copies.size(); ++i) {
    EXPECT_GE(step.copies[i].begin_ms, step.copies[i - 1].end_ms);
  }
  for (size_t i = 1; i < step.units.size(); ++i) {
    EXPECT_GE(step.units[i].begin_ms, step.units[i - 1].end_ms);
  }
  for (const auto& copy : step.copies) {
    const double used = step.units[copy.unit].begin_ms;
    EXPECT_TRUE(copy.end_ms <= used || copy.begin_ms >= step.units[copy.unit].end_ms) << copy.unit;
  }
}

// Measured on 2026-11-19: 12 steps at 1024 px, 309 tokens of text.
TEST(PlanMemory, StepsAreThoseMeasuredOnAnH200) {
  const MemoryPlans plans = plan_memory({.size = {1024, 1024}, .text_tokens = 309, .card = "h200"});
  EXPECT_NEAR(plans.resident_ms, 152, 15);
  struct Row {
    uint64_t gb;
    double ms;
  };
  for (const auto& [gb, ms] : {Row{16, 152}, {12, 151}, {8, 217}, {6, 246}}) {
    const auto found = std::ranges::find(plans.plans, gb * kGb, &BudgetPlan::memory_bytes);
    ASSERT_NE(found, plans.plans.end());
    EXPECT_NEAR(found->step_ms, ms, 0.1 * ms) << gb;
  }
}

TEST(PlanMemory, NoBudgetIsExceeded) {
  const MemoryPlans plans = plan_memory({});
  ASSERT_EQ(plans.plans.size(), std::size(kPlanBudgets));
  uint64_t streamed = UINT64_MAX;
  for (const BudgetPlan& plan : plans.plans) {
    ASSERT_TRUE(plan.fits) << plan.memory_bytes;
    EXPECT_LE(plan.weight_bytes + plan.buffer_bytes + plan.work_bytes + plan.context_bytes,
              plan.memory_bytes);
    EXPECT_LE(plan.streamed_bytes, streamed);
    EXPECT_EQ(plan.read_bytes, 0u);
    streamed = plan.streamed_bytes;
  }
  EXPECT_EQ(streamed, 0u);
}

TEST(PlanMemory, SaysTheLeastThatWorks) {
  PlanRequest request;
  request.model.max_memory = kGb;
  const BudgetPlan refused = plan_memory(request).plans.at(0);
  EXPECT_FALSE(refused.fits);
  ASSERT_GT(refused.least_bytes, kGb);
  request.model.max_memory = refused.least_bytes;
  EXPECT_TRUE(plan_memory(request).plans.at(0).fits);
  request.model.max_memory = refused.least_bytes - 1;
  EXPECT_FALSE(plan_memory(request).plans.at(0).fits);
}

TEST(PlanMemory, RulesAreFollowed) {
  PlanRequest request{.card = "rtx3090"};
  request.model.max_memory = 24 * kGb;
  request.model.keep = {{.part = "transformer", .where = Residency::host}};
  const MemoryPlans plans = plan_memory(request);
  const BudgetPlan& plan = plans.plans.at(0);
  EXPECT_GT(plan.host_bytes, 9 * kGb);
  EXPECT_GT(plan.streamed_bytes, 8 * kGb);
  EXPECT_GE(plan.step_ms, plans.resident_ms * 0.999);
  request.model.keep = {{.part = "", .where = Residency::device}};
  EXPECT_FALSE(plan_memory(request).plans.at(0).fits);
  request.model.keep = {{.part = "nosuch", .where = Residency::device}};
  EXPECT_ERROR_WITH(plan_memory(request), "no part \"nosuch\"");
}

TEST(PlanMemory, PredictsNothingThatItDoesNotKnow) {
  EXPECT_GT(plan_memory({.card = "rtx3090"}).plans.back().step_ms, 0);
  EXPECT_EQ(plan_memory({.card = "t4"}).plans.back().step_ms, 0);
  PlanRequest request{.card = "rtx3090"};
  request.model.keep = {{.part = "transformer", .where = Residency::streamed}};
  const BudgetPlan read = plan_memory(request).plans.back();
  EXPECT_GT(read.read_bytes, 8 * kGb);
  EXPECT_EQ(read.step_ms, 0);
}

TEST(PlanMemory, WrongRequestsAreRefused) {
  EXPECT_ERROR_WITH(plan_memory({.card = "nosuch"}), "no card");
  EXPECT_ERROR_WITH(plan_memory({.size = {100, 100}}), "multiple");
  EXPECT_ERROR_WITH(plan_memory({.text_tokens = -1}), "text_tokens");
}

}  // namespace
}  // namespace octet
