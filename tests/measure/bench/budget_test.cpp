// octet::bench_step within a budget: layers come while others run, and the timeline shows when.
// A CPU stands in for a device with memory of its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/error_message.h"
#include "formats/json_value.h"
#include "measure/bench/step.h"
#include "models/ideogram4/transformer.h"
#include "models/small_dit.h"
#include "octet/tools/report.h"

namespace octet {
namespace {

constexpr int kLayers = 8;

StepBenchRequest tried_request() {
  StepBenchRequest request;
  request.width = request.height = 64;
  request.text_tokens = 5;
  request.device = "cpu";
  request.threads = 2;
  request.steps = 3;
  return request;
}

StepBench bench_within(uint64_t max_memory) {
  StepBenchRequest request = tried_request();
  request.max_memory = max_memory;
  return bench_step(request,
                    [](size_t network) {
                      return std::make_unique<ideogram4::Transformer>(test::small_dit(kLayers, 384),
                                                                      /*conditional=*/network == 0);
                    },
                    {});
}

// In which about half of the layers have no place.
StepBench bench_of_half() {
  const StepBench all = bench_within(0);
  return bench_within(all.peak_bytes - all.weight_bytes / 2);
}

int layers_here(const StepBench& bench) {
  int here = 0;
  for (const PartPlace& place : bench.plan) here += place.layers_on_device;
  return here;
}

size_t count_of(std::string_view what, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(BenchStepBudget, LayersComeWhileOthersRun) {
  const StepBench bench = bench_of_half();
  ASSERT_EQ(bench.plan.size(), 2u);
  EXPECT_GT(layers_here(bench), 0);
  EXPECT_LT(layers_here(bench), 2 * kLayers);
  EXPECT_GT(bench.streamed_bytes, 0u);
  // Three buffers are a little larger than layers; a GPU's reserve for ops has room for that.
  EXPECT_LE(bench.peak_bytes, bench.max_memory + 3 * (uint64_t{64} << 10));
  EXPECT_EQ(bench.allocations, 0) << "a recorded step has its memory";
  EXPECT_GT(bench.branches.at(1).int8_tops, 0);

  const StepTimeline& timeline = bench.timeline;
  ASSERT_TRUE(timeline.is_known());
  ASSERT_EQ(timeline.passes.size(), 2u);
  EXPECT_EQ(timeline.passes[0].begin_ms, 0);
  EXPECT_EQ(timeline.passes[1].end_ms, timeline.ms);
  const auto coming = static_cast<size_t>(2 * kLayers - layers_here(bench));
  EXPECT_EQ(timeline.copies.size(), coming) << "each once in a step";
  EXPECT_EQ(timeline.runs.size(), coming + 2) << "and what comes before the first of a pass";
  // A unit in one piece is a little larger than its weights.
  EXPECT_NEAR(static_cast<double>(timeline.copied_bytes), static_cast<double>(bench.streamed_bytes),
              0.05 * static_cast<double>(bench.streamed_bytes));
  EXPECT_GT(timeline.copy_gb_per_s(), 0);
  double ran_ms = 0, passed_ms = 0;
  for (const StepSpan& pass : timeline.passes) passed_ms += pass.end_ms - pass.begin_ms;
  for (const StepSpan& run : timeline.runs) {
    EXPECT_GE(run.end_ms, run.begin_ms);
    ran_ms += run.end_ms - run.begin_ms;
  }
  EXPECT_NEAR(ran_ms + timeline.wait_ms, passed_ms, 1e-6 * passed_ms);
}

TEST(BenchStepBudget, WhatFitsStays) {
  const StepBench bench = bench_within(uint64_t{4} << 30);
  EXPECT_EQ(layers_here(bench), 2 * kLayers);
  EXPECT_EQ(bench.streamed_bytes, 0u);
  EXPECT_TRUE(bench.timeline.copies.empty());
  EXPECT_EQ(bench.timeline.wait_ms, 0);
  EXPECT_EQ(bench.timeline.runs.size(), 2u);
  EXPECT_TRUE(test::contains(timeline_svg(bench), "all layers stay"));
}

TEST(BenchStepBudget, IsToldAndDrawn) {
  const StepBench bench = bench_of_half();
  EXPECT_TRUE(test::contains(to_text(bench), "layers stay; "));
  EXPECT_TRUE(test::contains(to_text(bench), "come in each step"));
  const auto json = nlohmann::json::parse(to_json(bench));
  EXPECT_EQ(json["timeline"]["copies"].size(), bench.timeline.copies.size());
  EXPECT_EQ(json["timeline"]["runs"][0]["unit"], nullptr);
  EXPECT_EQ(json["plan"][0]["layers_on_device"], bench.plan[0].layers_on_device);
  EXPECT_EQ(json["streamed_bytes"], bench.streamed_bytes);
  const std::string drawing = timeline_svg(bench);
  EXPECT_EQ(count_of("<rect class=\"copy\"", drawing), bench.timeline.copies.size());
  EXPECT_EQ(count_of("<rect class=\"run\"", drawing), bench.timeline.runs.size());
  EXPECT_EQ(count_of("<svg", drawing), 1u);
}

TEST(BenchStepBudget, RefusesWhatSaysNothing) {
  EXPECT_ERROR_WITH(bench_within(1000), "GB at least");
  const StepBench all = bench_within(0);
  EXPECT_FALSE(all.timeline.is_known());
  EXPECT_ERROR_WITH(timeline_svg(all), "`max_memory`");
  StepBenchRequest request = tried_request();
  request.layers = 1;
  request.max_memory = uint64_t{8} << 30;
  EXPECT_ERROR_WITH(bench_step(request), "no memory of its own");
}

}  // namespace
}  // namespace octet
