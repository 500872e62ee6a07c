// A budget on a CPU: its networks share it with their work, and what does not fit is read from the
// files in each step.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "engine/toy_fixture.h"
#include "models/sample_captions.h"
#include "models/tokenizer/unicode.h"

namespace octet::test {
namespace {

struct Budgeted {
  EngineInfo info;
  std::vector<float> latent;
  std::vector<uint8_t> rgb;
  RenderReport report;
};

// Small enough for a test, and yet its weights are more than the work of a small picture.
ModelOptions demo_within(uint64_t max_memory) {
  ModelOptions options;
  options.model = OCTET_DEMO_DIR;
  options.device = "cpu";
  options.threads = 1;
  options.tuning = Tuning::off;
  options.max_memory = max_memory;
  return options;
}

PictureRequest square(int side) {
  PictureRequest request;
  request.caption = with_elements("");
  request.size = {side, side};
  request.steps = 1;
  return request;
}

Budgeted render_within(Engine& engine, int side) {
  Budgeted made;
  made.report = engine.render(square(side),
                              {.latent =
                                   [&](const LatentStep& step) {
                                     made.latent.assign(step.latent.begin(), step.latent.end());
                                   },
                               .picture = [&](const Picture& picture) { made.rgb = picture.rgb; }});
  made.info = engine.info();
  return made;
}

class HostBudget : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  }

  static void expect_kept(const Budgeted& made, const Budgeted& free) {
    const uint64_t budget = made.info.limit_bytes;
    EXPECT_LE(made.report.peak_bytes, budget) << text_of_plan(made.info);
    EXPECT_LE(made.info.planned_bytes, budget);
    EXPECT_TRUE(made.report.warnings == free.report.warnings);
    EXPECT_EQ(made.latent, free.latent);
    EXPECT_EQ(made.rgb, free.rgb);
    EXPECT_EQ(made.report.checkpoint, free.report.checkpoint);
  }
  static std::string text_of_plan(const EngineInfo& info) {
    return fmt::format("{} bytes of {} are planned, {} are read", info.planned_bytes,
                       info.limit_bytes, info.read_bytes);
  }
};

TEST_F(HostBudget, IsKeptWithTheSamePictures) {
  Engine unbounded(demo_within(0));
  const Budgeted free = render_within(unbounded, 64);
  EXPECT_EQ(free.info.read_bytes, 0u);
  uint64_t read = 0;
  for (const double share : {0.9, 0.75, 0.6}) {
    const auto budget = static_cast<uint64_t>(share * static_cast<double>(free.info.planned_bytes));
    Engine engine(demo_within(budget));
    const Budgeted made = render_within(engine, 64);
    expect_kept(made, free);
    EXPECT_GE(made.info.read_bytes, read) << "less memory, more reading";
    read = made.info.read_bytes;
  }
  EXPECT_GT(read, 0u);
}

TEST_F(HostBudget, LargerPicturesArePlannedAgain) {
  Engine unbounded(demo_within(0));
  const Budgeted small = render_within(unbounded, 64), large = render_within(unbounded, 512);
  Engine engine(demo_within(small.info.planned_bytes * 6 / 10));
  const Budgeted before = render_within(engine, 64);
  const Budgeted after = render_within(engine, 512);
  expect_kept(before, small);
  expect_kept(after, large);
  EXPECT_GT(after.info.read_bytes, before.info.read_bytes);
}

TEST_F(HostBudget, APictureThatNothingMakesRoomForLeavesAllAsItWas) {
  Engine unbounded(demo_within(0));
  const uint64_t planned = render_within(unbounded, 64).info.planned_bytes;
  Engine engine(demo_within(planned * 6 / 10));
  const Budgeted before = render_within(engine, 64);
  const uint64_t used = engine.state().used_bytes;
  EXPECT_GT(used, 0u);
  EXPECT_ERROR_WITH(engine.render(square(1024)), "are too few for pictures of this size");
  EXPECT_EQ(engine.state().used_bytes, used) << "nothing was released";
  const Budgeted after = render_within(engine, 64);
  EXPECT_EQ(after.rgb, before.rgb);
  EXPECT_EQ(after.report.places, before.report.places);
}

TEST_F(HostBudget, TooLittleIsRefused) {
  EXPECT_ERROR_WITH(Engine(demo_within(100'000)), "for a layer at a time; allow more");
}

}  // namespace
}  // namespace octet::test
