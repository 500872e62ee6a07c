// tune: plans that come with the program: whose they are, which one a problem gets.
#include "tune/shipped_plans.h"

#include <gtest/gtest.h>

#include <set>

#include "devices/gpu_tiles.h"
#include "formats/error_message.h"

namespace octet::tune {
namespace {

using Source = GemmPlan::Source;

ShippedCard some_card(bool is_measured) {
  ShippedCard card;
  card.device = "NVIDIA H200";
  card.names = {"H200"};
  card.multiprocessors = 132;
  card.is_measured = is_measured;
  card.layout = is_measured ? "rows" : "";
  card.date = "2026-11-19";
  card.commit = "0123456";
  const std::string prefix = is_measured ? "measured" : "predicted";
  card.kernels["4608x4608"] = {{1024, prefix + "_1024"}, {4096, prefix + "_4096"}};
  card.kernels["24576x4608+swiglu"] = {{4096, prefix + "_gated"}};
  if (!is_measured) card.kernels["13824x4608"] = {{4096, "predicted_wide"}};
  return card;
}

const std::vector<ShippedCard> kBoth = {some_card(false), some_card(true)};

GemmProblem problem_of_rows(int64_t m, std::string layout = "rows") {
  return {.m = m, .n = 4608, .k = 4608, .layout = std::move(layout)};
}

TEST(ShippedPlans, AreOfOneCardAlone) {
  const ShippedCard card = some_card(true);
  EXPECT_TRUE(card.is("NVIDIA H200", 132));
  EXPECT_TRUE(card.is("NVIDIA H200 141GB HBM3e", 132));
  EXPECT_FALSE(card.is("NVIDIA H200", 114));  // a part of one
  EXPECT_FALSE(card.is("NVIDIA H200 NVL", 132));
  EXPECT_FALSE(card.is("NVIDIA GH200 480GB", 132));
  const ShippedPlans other(kBoth, "NVIDIA H100 80GB HBM3", 132);
  EXPECT_FALSE(other.find(problem_of_rows(4096)));
  EXPECT_FALSE(ShippedPlans().find(problem_of_rows(4096)));
}

TEST(ShippedPlans, MeasuredOnesComeFirstAndAreExactForTheirRowsAndLayout) {
  const ShippedPlans plans(kBoth, "NVIDIA H200", 132);
  const auto exact = plans.find(problem_of_rows(4096));
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->plan.kernel, "measured_4096");
  EXPECT_EQ(exact->plan.source, Source::shipped);
  EXPECT_EQ(exact->plan.us, 0);
  EXPECT_EQ(exact->plan.date, "2026-11-19");
  EXPECT_TRUE(exact->is_exact);
  EXPECT_FALSE(plans.find(problem_of_rows(4095))->is_exact);
  EXPECT_FALSE(plans.find(problem_of_rows(4096, "plain rows"))->is_exact);

  GemmProblem wide = problem_of_rows(4096);
  wide.n = 13824;
  EXPECT_EQ(plans.find(wide)->plan.kernel, "predicted_wide");
  EXPECT_EQ(plans.find(wide)->plan.source, Source::predicted);
  EXPECT_FALSE(plans.find(wide)->is_exact);
  wide.n = 13825;
  EXPECT_FALSE(plans.find(wide));
}

TEST(ShippedPlans, TheNearestRowsCount) {
  const ShippedPlans plans(kBoth, "NVIDIA H200", 132);
  const auto kernel = [&](int64_t m) {
    const auto found = plans.find(problem_of_rows(m));
    return found ? found->plan.kernel : "";
  };
  EXPECT_EQ(kernel(683), "measured_1024");
  EXPECT_EQ(kernel(682), "");
  EXPECT_EQ(kernel(1536), "measured_1024");
  EXPECT_EQ(kernel(2048), "");
  EXPECT_EQ(kernel(2731), "measured_4096");
  EXPECT_EQ(kernel(6144), "measured_4096");
  EXPECT_EQ(kernel(6145), "");
  EXPECT_EQ(kernel(0), "");
}

TEST(ShippedPlans, ABiasAndTheTypeOfOutputsDoNotMatterButAGateDoes) {
  const ShippedPlans plans(kBoth, "NVIDIA H200", 132);
  GemmProblem problem = problem_of_rows(4096);
  problem.fusion = Fusion::bias;
  problem.out = DType::f32;
  EXPECT_EQ(plans.find(problem)->plan.kernel, "measured_4096");
  problem.n = 24576;
  EXPECT_FALSE(plans.find(problem));
  problem.fusion = Fusion::swiglu;
  EXPECT_EQ(plans.find(problem)->plan.kernel, "measured_gated");
}

TEST(ShippedPlans, TextAndBack) {
  const std::string text = shipped_text(kBoth);
  EXPECT_EQ(shipped_text(shipped_from_text(text, "made")), text);
  EXPECT_EQ(shipped_from_text(text, "made")[1].kernels, kBoth[1].kernels);
  EXPECT_TRUE(shipped_from_text(shipped_text({}), "made").empty());
}

TEST(ShippedPlans, WhatTheWriterCannotHaveMadeIsRefused) {
  const auto changed = [](std::string from, const std::string& to) {
    std::string text = shipped_text(kBoth);
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_ERROR_WITH(shipped_from_text("{", "it.json"), "it.json");
  EXPECT_ERROR_WITH(shipped_from_text("{}", "it.json"), "it.json");
  EXPECT_ERROR_WITH(shipped_from_text(changed("plans/1", "plans/2"), "it.json"), "plans/2");
  EXPECT_ERROR_WITH(shipped_from_text(changed("\"predicted\"", "\"guessed\""), "it.json"),
                    "guessed, expected measured or predicted");
  EXPECT_ERROR_WITH(shipped_from_text(changed("[4096]", "[4096, 4096]"), "it.json"),
                    "4096 rows of 13824x4608 twice");
  EXPECT_ERROR_WITH(shipped_from_text(changed("[4096]", "[0]"), "it.json"), "0 rows");
  EXPECT_ERROR_WITH(shipped_from_text(changed("[4096]", "\"many\""), "it.json"), "it.json");
}

// Of what is embedded in this build: every kernel is in the table of tiles, every card is itself.
TEST(ShippedPlans, NameKernelsThatExist) {
  std::set<std::string> kernels;
  for (const GpuTile& tile : gpu_tiles()) {
    kernels.insert(tile.name);
    if (tile.can_stream) kernels.insert(tile.name + "_streamk");
  }
  EXPECT_GT(shipped_cards().size(), 10u);
  for (const ShippedCard& card : shipped_cards()) {
    EXPECT_TRUE(card.is(card.device, card.multiprocessors) || !card.is_measured) << card.device;
    EXPECT_EQ(card.layout.empty(), !card.is_measured) << card.device;
    EXPECT_FALSE(card.kernels.empty()) << card.device;
    for (const auto& [weight, by_rows] : card.kernels) {
      for (const auto& [m, kernel] : by_rows) {
        EXPECT_TRUE(kernels.contains(kernel)) << card.device << ": " << kernel;
      }
    }
  }
}

}  // namespace
}  // namespace octet::tune
