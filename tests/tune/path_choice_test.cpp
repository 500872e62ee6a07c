// tune: INT8 or bf16, by what a plan file has.
#include "tune/path_choice.h"

#include <gtest/gtest.h>

#include "formats/temporary_folder.h"
#include "tune/plan_cache.h"
#include "tune/tune_support.h"

namespace octet::tune {
namespace {

using test::LogLines;
using test::some_header;
using test::some_plan;

GemmProblem problem_of(int64_t m, Fusion fusion = Fusion::none) {
  return {.m = m, .n = 4608, .k = 12288, .fusion = fusion, .layout = "rows"};
}

GemmPlan tuned(double us, double quantize_us, double unquantized_us) {
  GemmPlan plan = some_plan();
  plan.us = us;
  plan.reference_us = {{kQuantize, quantize_us}, {kUnquantized, unquantized_us}};
  return plan;
}

GemmPlan mapped(double int8_us, double bf16_us) {
  GemmPlan plan = tuned(1, 1, 1000);  // what the tuner saw does not count then
  plan.reference_us[kInt8Linear] = int8_us;
  plan.reference_us[kBf16Linear] = bf16_us;
  plan.reference_us[kFp8Linear] = 1;  // is nobody's choice: Octet does not run it
  return plan;
}

TEST(PathChoice, TimesOfThePlan) {
  const auto by_tuner = path_times(tuned(30, 5, 40));
  ASSERT_TRUE(by_tuner);
  EXPECT_EQ(by_tuner->int8_us, 35);
  EXPECT_EQ(by_tuner->bf16_us, 40);
  const auto by_map = path_times(mapped(50, 45));
  ASSERT_TRUE(by_map);
  EXPECT_EQ(by_map->int8_us, 50);
  EXPECT_EQ(by_map->bf16_us, 45);
  GemmPlan lacking = tuned(30, 5, 40);
  lacking.reference_us.erase(kQuantize);
  EXPECT_FALSE(path_times(lacking));
  lacking = tuned(0, 5, 40);
  EXPECT_FALSE(path_times(lacking));
}

TEST(PathChoice, TheNearestPlansDecide) {
  Plans plans;
  EXPECT_FALSE(is_faster_in_bf16(plans, 512, 4608, 12288));
  plans[problem_of(512).to_string()] = tuned(30, 5, 34);
  EXPECT_TRUE(is_faster_in_bf16(plans, 512, 4608, 12288));
  EXPECT_TRUE(is_faster_in_bf16(plans, 9999, 4608, 12288));
  EXPECT_FALSE(is_faster_in_bf16(plans, 512, 12288, 4608)) << "another linear";
  plans[problem_of(4096).to_string()] = tuned(100, 5, 200);
  EXPECT_FALSE(is_faster_in_bf16(plans, 4000, 4608, 12288));
  EXPECT_TRUE(is_faster_in_bf16(plans, 600, 4608, 12288));
}

// INT8 with SwiGLU against bf16 without says less than plain products, and those less than whole
// linears.
TEST(PathChoice, LikeIsComparedWithLike) {
  Plans plans;
  const auto is_bf16 = [&] { return is_faster_in_bf16(plans, 512, 4608, 12288); };
  const std::string plain = problem_of(512).to_string();
  const std::string fused = problem_of(512, Fusion::swiglu).to_string();
  plans[fused] = tuned(90, 5, 60);
  EXPECT_TRUE(is_bf16()) << "nothing else tells";
  plans[plain] = tuned(30, 5, 40);
  EXPECT_FALSE(is_bf16()) << "the plain one decides";
  plans[fused] = mapped(60, 55);
  EXPECT_TRUE(is_bf16()) << "whole linears decide";
  plans[plain] = mapped(50, 60);
  EXPECT_FALSE(is_bf16()) << "110 us against 115";
  plans[problem_of(600).to_string()] = mapped(9, 1);
  EXPECT_FALSE(is_bf16()) << "those are nearer";
}

TEST(PathChoice, OtherNamesOfProblemsAreNobodys) {
  Plans plans;
  for (const char* key : {"", "m512", "m512 n4608", "mx n4608 k12288", "m-1 n4608 k12288 BF16 rows",
                          "m99999999999999999999 n4608 k12288 BF16 rows"}) {
    plans[key] = mapped(2, 1);
  }
  EXPECT_FALSE(is_faster_in_bf16(plans, 512, 4608, 12288));
}

TEST(PathChoice, DecisionsOutliveTheProcess) {
  const LogLines log;
  const octet::test::TemporaryFolder folder;
  const std::string path = folder.file("plans.json");
  const GemmProblem problem = problem_of(512);
  {
    Planner planner(PlanCache(path, some_header()), TuneMode::missing);
    EXPECT_FALSE(planner.add_references(problem, {{kInt8Linear, 2}})) << "nobody asked for it";
    EXPECT_TRUE(planner.known().empty());
    const std::map<std::string, double> times = {{"wide", 30}, {kQuantize, 5}, {kUnquantized, 60}};
    planner.choose(problem, {{"wide", 1}}, [&] {
      return Trial{[times](const std::string& name, int) { return times.at(name); },
                   {kQuantize, kUnquantized}};
    });
    EXPECT_FALSE(is_faster_in_bf16(planner.known(), 512, 4608, 12288));
    EXPECT_TRUE(
        planner.add_references(problem, {{kInt8Linear, 70}, {kBf16Linear, 50}, {kFp8Linear, 40}}));
    EXPECT_EQ(planner.find(problem)->reference_us.at(kBf16Linear), 50);
    EXPECT_TRUE(is_faster_in_bf16(planner.known(), 512, 4608, 12288));
  }
  Planner next(PlanCache(path, some_header()), TuneMode::off);
  EXPECT_TRUE(is_faster_in_bf16(next.known(), 512, 4608, 12288));
  const GemmPlan& plan = next.known().at(problem.to_string());
  EXPECT_EQ(plan.kernel, "wide");
  EXPECT_EQ(plan.reference_us, (std::map<std::string, double>{{kQuantize, 5},
                                                              {kUnquantized, 60},
                                                              {kInt8Linear, 70},
                                                              {kBf16Linear, 50},
                                                              {kFp8Linear, 40}}));
  EXPECT_EQ(log.count(), 0u) << log.all();
}

TEST(PathChoice, PlansThatWereNotMeasuredAreNotKept) {
  const octet::test::TemporaryFolder folder;
  const std::string path = folder.file("plans.json");
  Planner planner(PlanCache(path, some_header()), TuneMode::off);
  planner.choose(problem_of(512), {{"wide", 1}}, [] { return Trial{}; });
  EXPECT_FALSE(planner.add_references(problem_of(512), {{kInt8Linear, 2}, {kBf16Linear, 1}}));
  EXPECT_TRUE(planner.known().empty());
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace octet::tune
