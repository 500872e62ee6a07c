// The text of the next job, encoded between the steps of a picture: what it spares, and what it
// leaves as it was.
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "engine/toy_fixture.h"
#include "models/golden_run.h"

namespace octet::test {
namespace {

// Everything of a report but times.
auto counts_of(const RenderReport& report) {
  std::vector<std::tuple<std::string, std::string, std::string, int64_t>> kernels;
  for (const KernelUse& use : report.kernels) {
    kernels.emplace_back(use.layer, use.path, use.kernel, use.launches);
  }
  std::vector<std::pair<std::string, int64_t>> ops;
  for (const OpShare& use : report.ops) ops.emplace_back(use.op, use.calls);
  std::vector<std::pair<std::string, int>> branches;
  for (const BranchUse& use : report.branches) branches.emplace_back(use.name, use.steps);
  const auto count = [](const LinearCount& of) {
    return std::tuple(of.int8, of.protected_, of.kept, of.floating, of.fake);
  };
  return std::tuple(kernels, ops, branches, count(report.linears), count(report.text_linears),
                    report.recorded_steps, report.checkpoint, report.warnings);
}

class Upcoming : public ToyFamily {
 protected:
  void SetUp() override {
    models::add_family(negative_toy_family());
    folder_model_ = folder_->file("negative");
    if (!std::filesystem::exists(folder_model_)) {
      write_toy_model(folder_model_, 1, negative_toy_family());
    }
  }
  ModelOptions model() const { return options(folder_model_); }
  static PictureRequest asked(const std::string& caption, const std::string& negative = "") {
    PictureRequest made = request(caption);
    made.negative = negative;
    made.steps = 5;
    return made;
  }
  // Renders one request while another one waits.
  static Rendered render_before(Engine& engine, const PictureRequest& now, const Job& next,
                                int* asked_for = nullptr, int ready_at = 1) {
    Rendered made;
    int count = 0;
    RenderCallbacks callbacks = into(made);
    callbacks.upcoming = [&] { return ++count >= ready_at ? next : Job(); };
    made.report = engine.render(now, callbacks);
    if (asked_for != nullptr) *asked_for = count;
    return made;
  }
  static Rendered render_before(Engine& engine, const PictureRequest& now,
                                const PictureRequest& next) {
    return render_before(engine, now, engine.check(next));
  }

  std::string folder_model_;
};

TEST_F(Upcoming, TextsAreThereWhenTheirTurnComes) {
  const PictureRequest now = asked("a red house", "grey"), next = asked("a blue tree", "dull sky");
  Engine engine(model()), plain(model());
  const Rendered alone = render(plain, now), next_alone = render(plain, next);
  ASSERT_FALSE(next_alone.report.text_cached);
  const Rendered beside = render_before(engine, now, next);
  EXPECT_TRUE(same(beside, alone));
  EXPECT_EQ(counts_of(beside.report), counts_of(alone.report));
  EXPECT_FALSE(beside.report.text_cached);
  EXPECT_GT(beside.report.ahead_s, 0);
  EXPECT_EQ(alone.report.ahead_s, 0);
  const Rendered then = render(engine, next);
  EXPECT_TRUE(then.report.text_cached);
  EXPECT_TRUE(same(then, next_alone));
  EXPECT_EQ(then.pictures.front().metadata, next_alone.pictures.front().metadata);
  EXPECT_EQ(then.report.text_linears.floating, next_alone.report.text_linears.floating);
}

TEST_F(Upcoming, OfTheGoldenModelChangesNoBit) {
  if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  ModelOptions golden = options(golden_path("model"));
  golden.convention = Convention::diffusers;
  PictureRequest now, next;
  now.caption = R"({"high_level_description":"a cat",)"
                R"("compositional_deconstruction":{"background":"a wall","elements":[]}})";
  now.size = {16, 16};
  now.preset = "turbo";
  now.steps = 4;
  now.images = 2;
  next = now;
  next.caption.replace(next.caption.find("cat"), 3, "dog");
  for (const Linears of_text : {Linears::floating, Linears::int8}) {
    golden.text_encoder_linears = of_text;
    golden.require_int8 = of_text == Linears::int8;
    Engine engine(golden), plain(golden);
    const Rendered alone = render(plain, now), next_alone = render(plain, next);
    const Rendered beside = render_before(engine, now, next);
    EXPECT_EQ(beside.latent, alone.latent);
    ASSERT_EQ(beside.pictures.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(beside.pictures[i].rgb, alone.pictures[i].rgb);
    EXPECT_EQ(counts_of(beside.report), counts_of(alone.report));
    const Rendered then = render(engine, next);
    EXPECT_TRUE(then.report.text_cached);
    EXPECT_TRUE(same(then, next_alone));
    EXPECT_EQ(then.report.text_linears.int8, next_alone.report.text_linears.int8);
  }
}

TEST_F(Upcoming, IsAskedForBetweenStepsUntilItIsKnown) {
  Engine engine(model());
  int count = 0;
  const Job next = engine.check(asked("a blue tree"));
  render_before(engine, asked("a red house"), next, &count, 3);
  EXPECT_EQ(count, 3);
  EXPECT_TRUE(render(engine, asked("a blue tree")).report.text_cached);
  render_before(engine, asked("a red house"), Job(), &count);
  EXPECT_EQ(count, 4) << "after each step but the last";
  PictureRequest two = asked("a red house");
  two.images = 2;
  render_before(engine, two, Job(), &count);
  EXPECT_EQ(count, 8);
}

TEST_F(Upcoming, OfAnotherLoadIsIgnored) {
  Engine engine(model()), other(model());
  const PictureRequest now = asked("a red house"), next = asked("a blue tree");
  const Rendered alone = render(other, now);
  int count = 0;
  const Rendered beside = render_before(engine, now, other.check(next), &count);
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(same(beside, alone));
  EXPECT_FALSE(render(engine, next).report.text_cached);
}

TEST_F(Upcoming, WaitsForAnEncoderThatIsNotOnTheDevice) {
  ModelOptions placed = model();
  placed.keep = {{kToyEncoder, Residency::streamed}};
  Engine engine(placed);
  const PictureRequest next = asked("a blue tree");
  render_before(engine, asked("a red house"), next);
  EXPECT_FALSE(render(engine, next).report.text_cached);
}

TEST_F(Upcoming, WaitsForRoom) {
  ModelOptions small = model();
  small.keep = {{"", Residency::device}};
  small.max_memory = 1000;
  Engine engine(small);
  const PictureRequest next = asked("a blue tree");
  render_before(engine, asked("a red house"), next);
  EXPECT_FALSE(render(engine, next).report.text_cached);
}

TEST_F(Upcoming, LeavesItsErrorsToItsOwnTurn) {
  Engine engine(model());
  const PictureRequest now = asked("a red house"), next = asked("a text of some length");
  const Rendered alone = render(model(), now);
  const Job job = engine.check(next);
  ToyEncoder::refused = static_cast<size_t>(job.text_tokens());
  EXPECT_TRUE(same(render_before(engine, now, job), alone));
  EXPECT_ERROR_WITH(engine.render(job), "does not like");
  ToyEncoder::refused = 0;
  EXPECT_FALSE(engine.render(job).text_cached);
}

TEST_F(Upcoming, IsEndedByCancel) {
  Engine engine(model());
  const PictureRequest now = asked("a red house"), next = asked("a blue tree");
  const Rendered alone = render(engine, now);
  RenderCallbacks callbacks;
  callbacks.upcoming = [&] {
    engine.cancel();
    return engine.check(next);
  };
  EXPECT_THROW(engine.render(now, callbacks), Cancelled);
  EXPECT_TRUE(same(render(engine, now), alone));
}

}  // namespace
}  // namespace octet::test
