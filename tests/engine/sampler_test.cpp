#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <limits>

#include "formats/error_message.h"
#include "models/ideogram4/schedule.h"
#include "ref/ref_backend.h"

namespace octet::test {
namespace {

using engine::SamplerStep;
using models::Schedule;

constexpr models::Branch kBranches[] = {
    {"first", 0, models::BranchText::prompt, 0, 1},
    {"second", 1, models::BranchText::none, 1, -1},
};

const Schedule kTwoSteps = {{0.125f, 0.5f, 1.0f}, {0.375f, 0.5f}, {7.0f, 3.0f}};

// Velocities as numbers of the host.
using HostVelocity =
    std::function<std::vector<float>(std::span<const float> z, int step, size_t branch)>;
using OnHostStep = std::function<bool(const SamplerStep& step, const std::vector<float>& velocity,
                                      const std::vector<float>& latent)>;

std::vector<float> downloaded(nn::Context& ctx, const ConstTensorView& matrix) {
  if (matrix.data == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(matrix.shape.elements()));
  download_matrix(ctx, matrix, values.data());
  return values;
}

// A latent with one channel, on ref.
std::vector<float> sample(const std::vector<float>& noise, const Schedule& schedule,
                          const HostVelocity& velocity, const OnHostStep& on_step = {},
                          DType dtype = DType::f32,
                          std::span<const models::Branch> branches = kBranches) {
  const auto backend = make_ref_backend();
  nn::Context ctx{*backend, dtype};
  engine::Sampler sampler(ctx, schedule, branches, std::ssize(noise), 1);
  return sampler.run(
      noise,
      engine::one_by_one(
          [&](const ConstTensorView& z, int step, size_t branch, const TensorView& out) {
            const std::vector<float> v = velocity(downloaded(ctx, z), step, branch);
            backend->copy(out.data, upload_matrix(ctx, v.data(), z.shape[0], 1).view().data,
                          bytes_of(dtype, z.shape));
          }),
      [&](const SamplerStep& step) {
        return !on_step ||
               on_step(step, downloaded(ctx, step.velocity), downloaded(ctx, step.latent));
      });
}

std::vector<float> constant(std::span<const float> z, float value) {
  return std::vector<float>(z.size(), value);
}

TEST(Sampler, IsEulersMethodWithGuidance) {
  // All values are binary fractions, so the results are exact.
  std::vector<int> steps;
  const auto velocity = [&](std::span<const float> z, int step, size_t branch) {
    steps.push_back(step);
    const float t = kTwoSteps.times[static_cast<size_t>(step)];
    std::vector<float> v(z.begin(), z.end());
    for (float& value : v) value = branch == size_t{0} ? value + 0.5f : value - t;
    return v;
  };
  const std::vector<float> latent = sample({1.0f, -2.0f}, kTwoSteps, velocity);
  std::vector<float> expected = {1.0f, -2.0f};
  for (float& z : expected) {
    z += 0.375f * (7 * (z + 0.5f) - 6 * (z - 0.125f));
    z += 0.5f * (3 * (z + 0.5f) - 2 * (z - 0.5f));
  }
  EXPECT_EQ(latent, expected);
  EXPECT_EQ(steps, (std::vector{0, 0, 1, 1}));
}

// The latent itself is never rounded to the type of the activations.
TEST(Sampler, ShowsNetworksTheLatentInTheirType) {
  std::vector<float> seen;
  const auto velocity = [&](std::span<const float> z, int, size_t branch) {
    if (branch == 0) seen.push_back(z[0]);
    return constant(z, 0.25f);
  };
  const float fine = 1.0f + 0x1p-20f;
  const auto latent = sample({fine}, kTwoSteps, velocity, {}, DType::bf16);
  EXPECT_EQ(seen, (std::vector{1.0f, 1.09375f}));
  EXPECT_EQ(latent[0], fine + 0.375f * 0.25f + 0.5f * 0.25f);
}

TEST(Sampler, ConstantVelocityIsIntegratedExactly) {
  models::ScheduleRequest request;
  request.preset = models::preset_named(ideogram4::presets(), "default");
  request.size = {1024, 1024};
  const Schedule schedule = ideogram4::make_schedule(request);
  const auto velocity = [](std::span<const float> z, int, size_t) { return constant(z, 1.0f); };
  const float travelled = sample({0.0f}, schedule, velocity)[0];
  // Twenty additions below 1, each rounding by at most half an ulp of 1.
  EXPECT_NEAR(travelled, schedule.times.back() - schedule.times.front(), 20 * 0x1p-24);
}

TEST(Sampler, ABranchWithoutWeightDoesNotRun) {
  Schedule schedule = kTwoSteps;
  schedule.guidance = {1.0f, 2.0f};
  std::vector<size_t> asked;
  const auto velocity = [&](std::span<const float> z, int, size_t branch) {
    asked.push_back(branch);
    return constant(z, branch == size_t{0} ? 1.0f : 100.0f);
  };
  EXPECT_EQ(sample({0.0f}, schedule, velocity)[0], 0.375f + 0.5f * (2 - 100));
  EXPECT_EQ(asked, (std::vector{size_t{0}, size_t{0}, size_t{1}}));
  asked.clear();
  schedule.guidance = {0.0f, 1.0f};
  EXPECT_EQ(sample({0.0f}, schedule, velocity)[0], 0.375f * 100 + 0.5f);
  EXPECT_EQ(asked, (std::vector{size_t{1}, size_t{0}}));
}

TEST(Sampler, CombinesAnyNumberOfBranches) {
  constexpr models::Branch kThree[] = {{"a", 0, models::BranchText::prompt, 0, 1},
                                       {"b", 0, models::BranchText::negative, 1.5f, -1},
                                       {"c", 0, models::BranchText::none, -0.5f, 0}};
  Schedule schedule = kTwoSteps;
  schedule.guidance = {4.0f, 1.5f};
  std::vector<size_t> asked;
  const auto velocity = [&](std::span<const float> z, int, size_t branch) {
    asked.push_back(branch);
    return constant(z, static_cast<float>(1 << branch));
  };
  EXPECT_EQ(sample({0.0f}, schedule, velocity, {}, DType::f32, kThree)[0],
            0.375f * (4 * 1 - 2.5f * 2 - 0.5f * 4) + 0.5f * (1.5f * 1 - 0.5f * 4));
  EXPECT_EQ(asked, (std::vector<size_t>{0, 1, 2, 0, 2}));
  constexpr models::Branch kOne[] = {{"only"}};
  EXPECT_EQ(sample({0.0f}, schedule, velocity, {}, DType::f32, kOne)[0], 0.375f + 0.5f);
  const auto none = std::span(kThree).first(1);
  schedule.guidance = {1.0f, 0.0f};
  EXPECT_ERROR_WITH(sample({0.0f}, schedule, velocity, {}, DType::f32, none),
                    "no branch runs at step 2 of 2 with a guidance of 0");
}

TEST(Sampler, ReportsEveryStep) {
  std::vector<int> done;
  const auto velocity = [](std::span<const float> z, int, size_t) { return constant(z, 0.0f); };
  sample({0.0f}, kTwoSteps, velocity, [&](const SamplerStep& step, const auto&, const auto&) {
    EXPECT_EQ(step.total, 2);
    EXPECT_GE(step.seconds, 0.0);
    done.push_back(step.done);
    return true;
  });
  EXPECT_EQ(done, (std::vector{0, 1, 2}));
}

TEST(Sampler, ShowsTheGuidedVelocityAndTheLatentOfEachStep) {
  const auto velocity = [](std::span<const float> z, int, size_t branch) {
    return constant(z, branch == size_t{0} ? 2.0f : 1.0f);
  };
  std::vector<float> velocities, latents;
  const auto on_step = [&](const SamplerStep& step, const auto& v, const auto& latent) {
    EXPECT_EQ(v.size(), step.done == 0 ? 0u : 1u);
    velocities.insert(velocities.end(), v.begin(), v.end());
    latents.insert(latents.end(), latent.begin(), latent.end());
    return true;
  };
  const std::vector<float> last = sample({1.0f}, kTwoSteps, velocity, on_step);
  // 7 * 2 - 6 * 1 over 0.375, then 3 * 2 - 2 * 1 over 0.5.
  EXPECT_EQ(velocities, (std::vector{8.0f, 4.0f}));
  EXPECT_EQ(latents, (std::vector{1.0f, 4.0f, 6.0f}));
  EXPECT_EQ(last, (std::vector{6.0f}));
}

TEST(Sampler, CanBeCancelledAfterAnyStep) {
  for (const int last : {0, 1, 2}) {
    int calls = 0;
    const auto velocity = [&](std::span<const float> z, int, size_t) {
      ++calls;
      return constant(z, 0.0f);
    };
    const auto until_last = [&](const SamplerStep& step, const auto&, const auto&) {
      return step.done < last;
    };
    EXPECT_THROW(sample({0.0f}, kTwoSteps, velocity, until_last), Cancelled);
    EXPECT_EQ(calls, 2 * last);
    EXPECT_ERROR_WITH(sample({0.0f}, kTwoSteps, velocity, until_last),
                      "cancelled after " + std::to_string(last) + " of 2 steps");
  }
}

TEST(Sampler, BrokenVelocitiesNameStepAndBranch) {
  for (const float broken :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    const auto velocity = [&](std::span<const float> z, int step, size_t branch) {
      std::vector<float> v = constant(z, 0.0f);
      if (step == 1 && branch == size_t{1}) v[1] = broken;
      return v;
    };
    EXPECT_ERROR_WITH(sample({0.0f, 0.0f, 0.0f}, kTwoSteps, velocity),
                      "the second branch returned");
    EXPECT_ERROR_WITH(sample({0.0f, 0.0f, 0.0f}, kTwoSteps, velocity),
                      "at step 2 of 2 (t = 0.5, value 1 of 3)");
  }
  const auto huge = [](std::span<const float> z, int, size_t) { return constant(z, 3e38f); };
  EXPECT_ERROR_WITH(sample({0.0f}, kTwoSteps, huge), "overflows at step 1 of 2");
}

TEST(Sampler, RefusesWhatDoesNotFit) {
  const auto velocity = [](std::span<const float> z, int, size_t) { return constant(z, 0.0f); };
  EXPECT_ERROR_WITH(sample({0.0f}, {{0.0f}, {0.5f}, {1.0f}}, velocity), "1 times");
  EXPECT_ERROR_WITH(sample({0.0f}, {{0.0f, 1.0f}, {0.5f}, {}}, velocity), "0 guidance values");
  EXPECT_EQ(sample({2.0f}, {{0.5f}, {}, {}}, velocity)[0], 2.0f);
  const auto backend = make_ref_backend();
  nn::Context ctx{*backend, DType::f32};
  engine::Sampler sampler(ctx, kTwoSteps, kBranches, 2, 3);
  EXPECT_ERROR_WITH(sampler.run(std::vector<float>(5), {}), "has 5 values, expected [2, 3]");
}

TEST(Sampler, IsOneOpInAStepAndAllocatesNothing) {
  class Counting : public OpObserver {
   public:
    void before(std::string_view op) override { ops.emplace_back(op); }
    void after(const OpRecord&) override {}
    std::vector<std::string> ops;
  } counting;
  const auto backend = make_ref_backend();
  backend->set_op_observer(&counting);
  nn::Context ctx{*backend, DType::bf16};
  engine::Sampler sampler(ctx, kTwoSteps, kBranches, 2, 3);
  const size_t used = backend->memory().used;
  sampler.run(std::vector<float>(6),
              engine::one_by_one([&](const auto&, int, size_t, const TensorView& out) {
                std::fill_n(out.as<bf16_t>(), 6, bf16_t{});
              }));
  EXPECT_EQ(counting.ops, (std::vector<std::string>{"sampling", "sampling"}));
  EXPECT_EQ(backend->memory().peak, used) << "a step allocates nothing";
  backend->set_op_observer(nullptr);
}

}  // namespace
}  // namespace octet::test
