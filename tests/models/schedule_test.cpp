#include "models/ideogram4/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "formats/error_message.h"
#include "models/ideogram4/normal_quantile.h"
#include "tensor/dtype.h"

namespace octet::test {
namespace {

using ideogram4::make_schedule;
using ideogram4::normal_quantile;
using models::Schedule;
using models::ScheduleRequest;

ScheduleRequest request_of(std::string_view preset, int side = 1024) {
  ScheduleRequest request;
  request.preset = models::preset_named(ideogram4::presets(), preset);
  request.size = {side, side};
  return request;
}

// Documented times of 1024x1024, to seven decimals.
const std::vector<float> kTurboTimes = {0.0001234f, 0.0262526f, 0.0528432f, 0.0852156f, 0.1248896f,
                                        0.1734463f, 0.2326965f, 0.3047250f, 0.3918900f, 0.4968025f,
                                        0.6224219f, 0.7733093f, 0.9994472f};
const std::vector<float> kDefaultTimes = {
    0.0001234f, 0.0273411f, 0.0504090f, 0.0753755f, 0.1028470f, 0.1331368f, 0.1664709f,
    0.2030309f, 0.2429627f, 0.2863752f, 0.3333333f, 0.3838497f, 0.4378752f, 0.4952911f,
    0.5559037f, 0.6194490f, 0.6856133f, 0.7541021f, 0.8248513f, 0.8989259f, 0.9994472f};
const std::vector<float> kQualityTimes = {
    0.0001234f, 0.0230133f, 0.0358936f, 0.0476828f, 0.0590982f, 0.0704112f, 0.0817600f,
    0.0932269f, 0.1048670f, 0.1167197f, 0.1288154f, 0.1411783f, 0.1538288f, 0.1667846f,
    0.1800615f, 0.1936740f, 0.2076354f, 0.2219584f, 0.2366551f, 0.2517374f, 0.2672168f,
    0.2831047f, 0.2994125f, 0.3161515f, 0.3333333f, 0.3509697f, 0.3690727f, 0.3876548f,
    0.4067289f, 0.4263089f, 0.4464096f, 0.4670468f, 0.4882381f, 0.5100030f, 0.5323637f,
    0.5553460f, 0.5789800f, 0.6033023f, 0.6283581f, 0.6542045f, 0.6809161f, 0.7085932f,
    0.7373765f, 0.7674727f, 0.7992068f, 0.8331382f, 0.8703830f, 0.9138915f, 0.9994472f};

void expect_times(const Schedule& schedule, const std::vector<float>& expected) {
  ASSERT_EQ(schedule.times.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    // Half a unit of the seventh decimal, and half an ulp of the float beside it.
    EXPECT_NEAR(schedule.times[i], expected[i], 0.9e-7) << i;
  }
}

TEST(Schedule, DocumentedTimes) {
  expect_times(make_schedule(request_of("turbo")), kTurboTimes);
  expect_times(make_schedule(request_of("default")), kDefaultTimes);
  expect_times(make_schedule(request_of("quality")), kQualityTimes);
}

TEST(Schedule, TimesAsTheNetworkRoundsThem) {
  const std::vector<float> rounded = {0.000123023987f, 0.0262451172f, 0.052734375f, 0.0854492188f,
                                      0.125f,          0.173828125f,  0.232421875f, 0.3046875f,
                                      0.392578125f,    0.49609375f,   0.62109375f,  0.7734375f};
  const Schedule schedule = make_schedule(request_of("V4_TURBO_12"));
  for (size_t i = 0; i < rounded.size(); ++i) {
    EXPECT_FLOAT_EQ(to_f32(from_f32<bf16_t>(schedule.times[i])), rounded[i]) << i;
  }
}

TEST(Schedule, GuidanceOfThePresets) {
  const auto guidance = [](std::string_view preset, int steps) {
    ScheduleRequest request = request_of(preset);
    request.steps = steps;
    const Schedule schedule = make_schedule(request);
    EXPECT_EQ(schedule.guidance.size(), static_cast<size_t>(steps));
    const auto strong = std::count(schedule.guidance.begin(), schedule.guidance.end(), 7.0f);
    for (size_t i = 0; i < schedule.guidance.size(); ++i) {
      EXPECT_EQ(schedule.guidance[i], i < static_cast<size_t>(strong) ? 7.0f : 3.0f);
    }
    return strong;
  };
  EXPECT_EQ(guidance("quality", 48), 45);
  EXPECT_EQ(guidance("default", 20), 18);
  EXPECT_EQ(guidance("turbo", 12), 11);
  EXPECT_EQ(guidance("quality", 96), 90);
  EXPECT_EQ(guidance("default", 14), 13);
  EXPECT_EQ(guidance("turbo", 2), 1);
  EXPECT_EQ(guidance("turbo", 1), 1);
}

TEST(Schedule, GuidanceOfTheUser) {
  ScheduleRequest request = request_of("turbo");
  request.steps = 3;
  request.guidance = {5};
  EXPECT_EQ(make_schedule(request).guidance, std::vector<float>(3, 5));
  request.guidance = {4, 1, 2};
  EXPECT_EQ(make_schedule(request).guidance, request.guidance);
  request.guidance = {4, 1};
  EXPECT_ERROR_WITH(make_schedule(request), "`guidance`: 2 values for 3 steps");
  for (const float nonsense : {std::numeric_limits<float>::infinity(), -1.0f, 101.0f}) {
    request.guidance = {nonsense};
    EXPECT_ERROR_WITH(make_schedule(request), "expected 0 to 100");
  }
}

TEST(Schedule, EndPoints) {
  for (const models::Preset& preset : ideogram4::presets()) {
    for (const int steps : {1, 2, 3, 7, 1000}) {
      ScheduleRequest request = request_of(preset.name, 2048);
      request.steps = steps;
      const Schedule official = make_schedule(request);
      EXPECT_EQ(official.times.front(), 0.00012339457598623172f);
      EXPECT_EQ(official.times.back(), 0.9994472213630764f);
      request.convention = Convention::diffusers;
      const Schedule other = make_schedule(request);
      EXPECT_EQ(other.times.back(), 1.0f);
      // Its sigma is one minus the time in fp32.
      EXPECT_NEAR(other.times.front(), official.times.front(), 0x1p-24);
      for (const Schedule& schedule : {official, other}) {
        ASSERT_EQ(schedule.steps(), steps);
        ASSERT_EQ(schedule.times.size(), static_cast<size_t>(steps) + 1);
        float sum = schedule.times.front();
        for (size_t k = 0; k < schedule.deltas.size(); ++k) {
          EXPECT_GE(schedule.deltas[k], 0.0f);
          EXPECT_LE(schedule.times[k], schedule.times[k + 1]);
          sum += schedule.deltas[k];
        }
        // Each addition rounds by at most half an ulp of 1.
        EXPECT_NEAR(sum, schedule.times.back(), (static_cast<float>(steps) + 2) * 0x1p-24f);
      }
    }
  }
}

TEST(Schedule, LargerPicturesSpendMoreStepsNearTheNoise) {
  const Schedule small = make_schedule(request_of("default", 512));
  const Schedule large = make_schedule(request_of("default", 2048));
  EXPECT_FLOAT_EQ(small.times[10], 0.5f);            // mean 0
  EXPECT_FLOAT_EQ(large.times[10], 1.0f / (1 + 4));  // exp(mean) = sqrt(16)
}

TEST(Schedule, SaysWhichBranchesRun) {
  const auto branches = models::family_named("ideogram4").branches;
  const auto running = [&](const std::vector<float>& guidance) {
    ScheduleRequest request = request_of("turbo");
    request.guidance = guidance;
    return models::running_branches(branches, make_schedule(request));
  };
  using Indices = std::vector<size_t>;
  EXPECT_EQ(running({}), (Indices{0, 1}));
  EXPECT_EQ(running({1}), (Indices{0}));
  EXPECT_EQ(running({0}), (Indices{1}));  // the unconditional velocity alone
  std::vector<float> one_guided(12, 1.0f);
  EXPECT_EQ(running(one_guided), (Indices{0}));
  one_guided[7] = 1.5f;
  EXPECT_EQ(running(one_guided), (Indices{0, 1}));
  ScheduleRequest request = request_of("turbo");
  request.guidance = one_guided;
  const Schedule schedule = make_schedule(request);
  EXPECT_EQ(models::runs_of_network(branches, 0, schedule, 12), 12);
  EXPECT_EQ(models::runs_of_network(branches, 1, schedule, 12), 1);
  EXPECT_EQ(models::runs_of_network(branches, 1, schedule, 7), 0);
  EXPECT_TRUE(models::runs_unguided(branches, 0));
  EXPECT_FALSE(models::runs_unguided(branches, 1));
}

TEST(Schedule, PhasesOfGuidanceKeepTheirShares) {
  ScheduleRequest request;
  request.preset = {.name = "three", .steps = 10, .phases = {{5, 4.0f}, {3, 2.0f}, {2, 1.0f}}};
  const auto counts = [&](int steps) {
    const auto made = models::guidance_of(request, steps);
    std::vector<int64_t> each;
    for (const float by : {4.0f, 2.0f, 1.0f}) {
      each.push_back(std::count(made.begin(), made.end(), by));
    }
    EXPECT_TRUE(std::is_sorted(made.rbegin(), made.rend()));
    return each;
  };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(counts(10), (Counts{5, 3, 2}));
  EXPECT_EQ(counts(20), (Counts{10, 6, 4}));
  EXPECT_EQ(counts(3), (Counts{1, 1, 1}));
  EXPECT_EQ(counts(2), (Counts{1, 0, 1}));
  EXPECT_EQ(counts(1), (Counts{1, 0, 0}));
  request.preset.phases.clear();
  EXPECT_EQ(models::guidance_of(request, 2), (std::vector{1.0f, 1.0f}));
  request.preset.phases = {{5, 4.0f}};
  EXPECT_ERROR_WITH(models::guidance_of(request, 2), "a preset of 10 steps has phases");
}

TEST(Schedule, RefusesWhatMakesNoSchedule) {
  EXPECT_ERROR_WITH(
      models::preset_named(ideogram4::presets(), "fast\n"),
      "`preset`: \"fast\\u000a\" is unknown, expected quality (V4_QUALITY_48), default "
      "(V4_DEFAULT_20) or turbo (V4_TURBO_12)");
  ScheduleRequest request = request_of("turbo");
  request.steps = -1;
  EXPECT_ERROR_WITH(make_schedule(request), "-1 steps, expected 1 to 1000");
  request.steps = 1001;
  EXPECT_ERROR_WITH(make_schedule(request), "1001 steps");
  EXPECT_ERROR_WITH(make_schedule(request_of("turbo", 0)), "0x0");
  request = request_of("turbo");
  request.preset.parameters["std"] = 0;
  EXPECT_ERROR_WITH(make_schedule(request), "std above 0");
  request.preset.parameters["std"] = std::nan("");
  EXPECT_ERROR_WITH(make_schedule(request), "finite");
}

TEST(NormalQuantile, KnownValues) {
  // From 40-digit arithmetic.
  const std::pair<double, double> known[] = {
      {0.975, 1.959963984540053855604},  {0.75, 0.6744897501960817432022},
      {0.25, -0.6744897501960817432022}, {0.07, -1.475791028179170685609},
      {1e-3, -3.090232306167813535358},  {1e-10, -6.3613409024040561991},
      {1e-300, -37.04709629936119923655}};
  for (const auto& [probability, quantile] : known) {
    EXPECT_NEAR(normal_quantile(probability), quantile, 4e-16 * std::abs(quantile)) << probability;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_EQ(normal_quantile(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(normal_quantile(1), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(normal_quantile(-0.1)));
  EXPECT_TRUE(std::isnan(normal_quantile(std::nan(""))));
}

TEST(NormalQuantile, InvertsTheDistribution) {
  for (int i = 1; i < 4096; ++i) {
    const double probability = i / 4096.0;
    const double x = normal_quantile(probability);
    // An ulp of x moves the probability by x * density * 2^-52 < 0.3 * 2^-52.
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)), probability, 0x1p-51) << i;
    EXPECT_EQ(normal_quantile(1 - probability), -x) << i;
  }
}

}  // namespace
}  // namespace octet::test
