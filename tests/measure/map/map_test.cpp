// octet::map_device: what it measures on a host, and what it makes of measurements elsewhere.
#include "measure/map/map.h"

#include <gtest/gtest.h>

#include <numeric>

#include "formats/error_message.h"
#include "octet/error.h"

namespace octet {
namespace {

using test::contains;
using test::error_of;

// As a GPU might have them: the time of a linear is proportional to its work.
std::vector<MapRow> rows_of_model(const std::vector<int>& sizes) {
  const std::pair<int64_t, int64_t> linears[] = {
      {13824, 4608}, {4608, 4608}, {24576, 4608}, {4608, 12288}};
  std::vector<MapRow> rows;
  for (const int pixels : sizes) {
    for (const auto& [n, k] : linears) {
      MapRow& row = rows.emplace_back();
      row.shape = {int64_t{pixels / 16} * (pixels / 16), n, k};
      row.pixels = pixels;
      row.layer = "linear";
      const double work = static_cast<double>(row.shape.m * n * k) * 1e-9;
      row.cells = {{"int8", 1.1 * work, work, 0.02, 2},
                   {"bf16", 2.2 * work, 2 * work, 0.002, 1},
                   {"fp8", 1.2 * work, 1.25 * work, 0.04, 1.6},
                   {"nf4", 3 * work, 2.5 * work, 0.1, 0.8},
                   {"fake", 4 * work, 3 * work, 0.02, 0.67}};
      row.fastest = "int8";
      row.path = "int8";
    }
  }
  return rows;
}

TEST(Map, OnAHost) {
  MapRequest request;
  request.shapes = "16,64,64;8,128,64";
  request.device = "cpu";
  request.threads = 1;
  request.seconds = 0;
  std::pair<int, int> last;
  const DeploymentMap map = map_device(request, [&](const std::string& phase, int done, int total) {
    EXPECT_EQ(phase, "linears");
    last = {done, total};
  });
  EXPECT_EQ(last, std::pair(2, 2));
  ASSERT_EQ(map.rows.size(), 2u);
  EXPECT_EQ(map.rows[1].shape.n, 128);
  ASSERT_EQ(map.ways.size(), 3u);
  for (const MapRow& row : map.rows) {
    ASSERT_EQ(row.cells.size(), 3u);
    EXPECT_EQ(row.cell("bf16")->ratio, 1);
    EXPECT_EQ(row.cell("fp8"), nullptr);
    EXPECT_TRUE(row.path == "int8" || row.path == "bf16");
    EXPECT_EQ(row.plan, "only");
    EXPECT_EQ(row.pixels, 0);
  }
  EXPECT_TRUE(map.steps.empty() && map.memory.empty());
  EXPECT_TRUE(map.plan_file.empty());
  EXPECT_EQ(map.kept_rows, 0);
  const HeatMap drawn = heat_map_of(map);
  EXPECT_EQ(drawn.rows.size(), 2u);    // 64 x 64 and 128 x 64
  EXPECT_EQ(drawn.groups.size(), 2u);  // 16 and 8 rows
  EXPECT_TRUE(contains(drawn.subtitle, "measured on"));
  const std::string page = map_page(map);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(contains(page, "128 x 64"));
}

TEST(Map, RefusesWhatMakesNoSense) {
  const auto sentence = [](const MapRequest& request) {
    return error_of([&] { map_device(request); });
  };
  EXPECT_TRUE(contains(sentence({.shapes = "16,64", .device = "cpu"}), "'16,64' is neither"));
  EXPECT_TRUE(contains(sentence({.shapes = "ideogram4@100", .device = "cpu"}), "multiple of 16"));
  EXPECT_TRUE(contains(sentence({.device = "cpu", .seconds = -1}), "expected 0 to 60"));
  EXPECT_TRUE(contains(sentence({.text_tokens = -1, .device = "cpu"}), "`text_tokens`"));
  EXPECT_TRUE(contains(sentence({.device = "cpu", .layers = 1}), "`layers`"));
}

TEST(Map, LinearsBetweenThoseThatWereMeasured) {
  const std::vector<MapRow> rows = rows_of_model({768, 1024});
  const double at_1024 = rows[5].cell("int8")->load_us;  // 4608 x 4608
  EXPECT_DOUBLE_EQ(measure::linear_us_at(rows, "int8", 4096, 4608, 4608), at_1024);
  EXPECT_NEAR(measure::linear_us_at(rows, "int8", 3000, 4608, 4608), at_1024 * 3000 / 4096, 1e-6);
  EXPECT_NEAR(measure::linear_us_at(rows, "int8", 8192, 4608, 4608), 2 * at_1024, 1e-6);
  EXPECT_NEAR(measure::linear_us_at(rows_of_model({1024}), "int8", 2048, 4608, 4608), at_1024 / 2,
              1e-6);
  EXPECT_EQ(measure::linear_us_at(rows, "int8", 4096, 4608, 1), 0);
  EXPECT_EQ(measure::linear_us_at(rows, "unheard of", 4096, 4608, 4608), 0);
}

// A step of `first` + layers * `each` ms, half of which are linears and a quarter attention.
StepBench step_of(const StepBenchRequest& request, double first, double each) {
  StepBench bench;
  bench.layers = request.layers;
  bench.weight_bytes = 1000;
  bench.peak_bytes = request.linears == Linears::int8 ? 1700 : 1900;
  StepBranch& branch = bench.branches.emplace_back();
  branch.ms = first + each * static_cast<double>(request.layers);
  branch.watched_ms = 2 * branch.ms;
  branch.ops = {{.op = request.linears == Linears::int8 ? "gemm" : "matmul", .ms = branch.ms},
                {.op = "attention", .ms = branch.ms / 2},
                {.op = "norm", .ms = branch.ms / 2}};
  return bench;
}

TEST(Map, StepsAreCountedUpAndComputed) {
  const models::Family& family = models::family_named("ideogram4");
  const std::vector<MapRow> rows = rows_of_model({768, 1024});
  MapRequest request;
  request.layers = 5;
  std::vector<StepBenchRequest> asked;
  const measure::MapSteps made = measure::map_steps(
      family, {1024}, request, 34, rows, [&](const StepBenchRequest& step) -> StepBench {
        asked.push_back(step);
        if (step.attention == AttentionMode::int8_full) throw Error("not here");
        const double each = step.linears == Linears::int8 ? 3 : 8;
        return step_of(step, 2, step.attention == AttentionMode::int8 ? each - 1 : each);
      });
  ASSERT_EQ(asked.size(), 7u);  // five and one layers: in bf16, and in INT8 but for what failed
  EXPECT_EQ(asked[0].layers, 5);
  EXPECT_EQ(asked[1].layers, 1);
  EXPECT_EQ(asked[2].layers, 5);
  EXPECT_EQ(asked[4].layers, 5) << "those with the same weights follow each other";
  EXPECT_EQ(asked[0].text_tokens, 512);
  std::map<std::string, const MapStep*> steps;
  for (const MapStep& step : made.steps) steps[step.way + " " + step.attention] = &step;
  ASSERT_EQ(steps.size(), 6u);
  const MapStep& int8 = *steps.at("int8 bf16");
  EXPECT_TRUE(int8.measured);
  EXPECT_NEAR(int8.ms, 2 + 34 * 3, 1e-9);
  EXPECT_NEAR(int8.linears_ms, int8.ms / 2, 1e-9);
  EXPECT_NEAR(int8.attention_ms, int8.ms / 4, 1e-9);
  EXPECT_NEAR(int8.rest_ms, int8.ms / 4, 1e-9);
  EXPECT_NEAR(int8.seconds(20), int8.ms * 0.02, 1e-9);
  EXPECT_NEAR(steps.at("int8 int8")->ms, 2 + 34 * 2, 1e-9);
  const MapStep& bf16 = *steps.at("bf16 bf16");
  EXPECT_NEAR(bf16.ms, 2 + 34 * 8, 1e-9);
  // All linears of both networks, 4096 + 512 and 4096 tokens, in one us per 10^9 multiplications.
  const double work_ms = 34 * (4096 + 512 + 4096) * 254803968.0 * 1e-9 * 1e-3;
  EXPECT_NEAR(int8.computed_ms, bf16.ms - work_ms, 1e-6);
  EXPECT_NEAR(steps.at("fp8 bf16")->ms, bf16.ms - 0.75 * work_ms, 1e-6);
  EXPECT_NEAR(steps.at("nf4 bf16")->ms, bf16.ms + 0.5 * work_ms, 1e-6);
  EXPECT_NEAR(steps.at("fake bf16")->ms, bf16.ms + work_ms, 1e-6);
  EXPECT_FALSE(steps.at("fp8 bf16")->measured);
  ASSERT_EQ(made.work.size(), 2u);
  EXPECT_EQ(made.work[0].way, "bf16");
  EXPECT_EQ(made.work[0].work_bytes, 900u);
  EXPECT_EQ(made.work[1].work_bytes, 700u);
}

TEST(Map, MemoryIsThatOfTheShapes) {
  const models::Family& family = models::family_named("ideogram4");
  MapMemory work;
  work.way = "int8";
  work.pixels = 1024;
  work.work_bytes = 500'000'000;
  const auto memory = measure::map_memory(family, {1024, 2048},
                                          {"int8", "bf16", "fp8", "nf4", "fake"}, 512, {work});
  ASSERT_EQ(memory.size(), 20u);
  const auto find = [&](const std::string& way, bool alone, int pixels) {
    for (const MapMemory& each : memory) {
      if (each.way == way && each.alone == alone && each.pixels == pixels) return each;
    }
    return MapMemory{};
  };
  const auto gigabytes = [](uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; };
  // docs/memory_and_speed.md has these from the same shapes.
  const MapMemory int8 = find("int8", false, 1024);
  EXPECT_NEAR(gigabytes(int8.weight_bytes), 19.31, 0.01);
  EXPECT_NEAR(gigabytes(find("int8", true, 1024).weight_bytes), 9.90, 0.01);
  EXPECT_TRUE(int8.measured);
  EXPECT_EQ(int8.work_bytes, 500'000'000u);
  EXPECT_EQ(int8.fits, (std::vector<int>{24, 32, 48, 80}));
  EXPECT_FALSE(find("int8", false, 2048).measured);
  EXPECT_NEAR(gigabytes(find("bf16", false, 1024).weight_bytes), 19.31 + 17.33 - 0.01, 0.02);
  EXPECT_EQ(find("bf16", false, 1024).fits, (std::vector<int>{48, 80}));
  EXPECT_EQ(find("fp8", false, 1024).weight_bytes, int8.weight_bytes);
  const MapMemory nf4 = find("nf4", false, 1024), fake = find("fake", false, 1024);
  EXPECT_NEAR(gigabytes(nf4.weight_bytes), 19.31 - 17.33 * (1 - 0.5625), 0.02);
  EXPECT_EQ(fake.weight_bytes, int8.weight_bytes);
  const uint64_t largest = uint64_t{2} * 24576 * 4608;
  EXPECT_EQ(fake.work_bytes, find("fp8", false, 1024).work_bytes + largest);
  EXPECT_EQ(nf4.work_bytes, fake.work_bytes);
}

TEST(Map, TheDrawingHasItsCells) {
  DeploymentMap map;
  map.device = "A <GPU>";
  map.date = "2025-01-31T12:00:00Z";
  map.commit = "abc";
  map.rows = rows_of_model({768, 1024});
  map.rows.back().cells.pop_back();
  for (const char* way : {"int8", "bf16", "fp8", "nf4", "fake"}) map.ways.push_back({way, "how"});
  const HeatMap drawn = heat_map_of(map);
  ASSERT_EQ(drawn.groups.size(), 2u);
  EXPECT_EQ(drawn.groups[0].name, "768 px, 2304 rows");
  EXPECT_EQ(drawn.groups[0].columns, (std::vector<std::string>{"int8", "fp8", "nf4", "fake"}));
  ASSERT_EQ(drawn.rows.size(), 4u);
  EXPECT_EQ(drawn.rows[3].cells[6].ratio, 0.8);
  EXPECT_EQ(drawn.rows[3].cells[7].ratio, 0) << "no such way";
  EXPECT_TRUE(drawn.rows[0].cells[0].best);
  EXPECT_FALSE(drawn.rows[0].cells[1].best);
  const std::string svg = heat_map_svg(drawn);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(contains(svg, "measured on A &lt;GPU&gt;, 2025-01-31, commit abc"));
  EXPECT_FALSE(contains(svg, "<GPU>"));
  EXPECT_TRUE(contains(svg, ">2.00</text>"));
  EXPECT_TRUE(contains(svg, "prefers-color-scheme:dark"));
  HeatMap torn = drawn;
  torn.rows[0].cells.pop_back();
  EXPECT_TRUE(contains(error_of([&] { heat_map_svg(torn); }), "expected 8"));
}

}  // namespace
}  // namespace octet
