// What a step leaves out, against doing it all: modulations of one step at a time, and the text's
// rows of the last block.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "cpu/cpu_backend.h"
#include "formats/error_message.h"
#include "models/ideogram4/transformer.h"
#include "models/small_dit.h"
#include "nn/attention.h"
#include "ref/ref_backend.h"
#include "weights/random_weights.h"

namespace octet::test {
namespace {

const std::vector<float> kTimes = {0.0f, 0.125f, 0.3f, 0.625f, 0.9f};
const models::Grid kGrid{2, 3};

// A small transformer with random weights, and what it works on.
struct Denoising {
  Denoising(Backend& backend, DType dtype, bool int8)
      : ctx{backend, dtype}, network(small_dit(3, 96), /*conditional=*/true) {
    weights::RandomWeights make(backend, {.seed = 5, .dtype = dtype, .int8 = int8});
    network.visit_all(make);
    std::vector<float> features(4 * 40), latent(6 * 16);
    weights::fill_random(1, {"features", {}, 0}, {0, 1}, 0, features);
    weights::fill_random(1, {"latent", {}, 0}, {0, 1}, 0, latent);
    prompt = network.prepare(ctx, features, kGrid);
    z.emplace(nn::upload_matrix(ctx, latent.data(), 6, 16));
  }

  std::vector<float> numbers(const ConstTensorView& matrix) {
    std::vector<float> values(static_cast<size_t>(matrix.shape.elements()));
    download_matrix(ctx, matrix, values.data());
    return values;
  }
  std::vector<float> velocity_at(nn::Context& with, float time) {
    const nn::Matrix out = ctx.matrix(6, 16);
    network.velocity_at(with, *prompt, *z, time, out);
    return numbers(out);
  }
  std::vector<float> velocity(models::Timeline& timeline, int64_t step) {
    const nn::Matrix out = ctx.matrix(6, 16);
    timeline.go_to(ctx, step);
    network.velocity(ctx, *prompt, timeline, *z, out);
    return numbers(out);
  }

  nn::Context ctx;
  ideogram4::Transformer network;
  std::unique_ptr<models::Conditioning> prompt;
  std::optional<nn::Matrix> z;
};

TEST(Timeline, AllStepsAtOnceGiveTheBitsOfEach) {
  const auto ref = make_ref_backend(), cpu = make_cpu_backend({.threads = 2});
  for (Backend* backend : {ref.get(), cpu.get()}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(backend->name() + " " + std::string(name_of(dtype)));
      Denoising run(*backend, dtype, /*int8=*/true);
      const auto timeline = run.network.make_timeline(run.ctx, kTimes);
      // Also out of order, and one a second time.
      for (const int64_t step : {2, 0, 4, 1, 3, 2}) {
        const float time = kTimes[static_cast<size_t>(step)];
        EXPECT_EQ(run.velocity(*timeline, step), run.velocity_at(run.ctx, time)) << step;
      }
      EXPECT_NE(run.velocity(*timeline, 0), run.velocity(*timeline, 1));
    }
  }
}

double relative_distance(const std::vector<float>& got, const std::vector<float>& want) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(got[i] - want[i], 2);
    size += std::pow(want[i], 2);
  }
  return std::sqrt(difference / size);
}

// Scores in INT8, and values, too, move the velocity by the rounding of their codes, no more; and
// they do run.
TEST(Attention, InInt8IsCloseAndNotTheSame) {
  const auto ref = make_ref_backend(), cpu = make_cpu_backend({.threads = 2});
  for (Backend* backend : {ref.get(), cpu.get()}) {
    SCOPED_TRACE(backend->name());
    Denoising run(*backend, DType::f32, /*int8=*/false);
    const auto want = run.velocity_at(run.ctx, 0.5f);
    nn::Context with_codes = run.ctx;
    with_codes.scores = nn::AttentionScores::int8;
    const auto scores = run.velocity_at(with_codes, 0.5f);
    EXPECT_GT(relative_distance(scores, want), 1e-6);
    EXPECT_LT(relative_distance(scores, want), 0.02);
    with_codes.scores = nn::AttentionScores::int8_full;
    const auto all = run.velocity_at(with_codes, 0.5f);
    EXPECT_GT(relative_distance(all, scores), 1e-6);
    EXPECT_LT(relative_distance(all, want), 0.02);
  }
}

// Sees inputs and does nothing: with it, all rows run through all blocks.
class IdleTap : public nn::InputTap {
 public:
  void input(const nn::Linear& w, const ConstTensorView& x) override { rows[w.name] = x.shape[0]; }
  std::map<std::string, int64_t> rows;
};

TEST(LastBlock, LeavesTheTextOutAndGivesTheSameBits) {
  const auto ref = make_ref_backend(), cpu = make_cpu_backend({.threads = 2});
  for (Backend* backend : {ref.get(), cpu.get()}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(backend->name() + " " + std::string(name_of(dtype)));
      Denoising run(*backend, dtype, /*int8=*/false);
      const auto short_one = run.velocity_at(run.ctx, 0.5f);
      IdleTap tap;
      nn::Context watched{*backend, dtype, nullptr, &tap};
      EXPECT_EQ(short_one, run.velocity_at(watched, 0.5f));
      EXPECT_EQ(tap.rows.at("layers.2.feed_forward.w1"), 4 + 6);
    }
  }
}

// The last block's multiplications of activations: of all tokens for qkv, of the image's for the
// rest.
TEST(LastBlock, MultipliesTheImagesRowsAlone) {
  class Rows : public OpObserver {
   public:
    void before(std::string_view) override {}
    void after(const OpRecord& record) override {
      if (record.problem != nullptr) rows.push_back(record.problem->m);
    }
    std::vector<int64_t> rows;
  };
  const auto backend = make_ref_backend();
  Denoising run(*backend, DType::f32, /*int8=*/true);
  Rows seen;
  backend->set_op_observer(&seen);
  run.velocity_at(run.ctx, 0.5f);
  backend->set_op_observer(nullptr);
  EXPECT_EQ(seen.rows, (std::vector<int64_t>{10, 10, 10, 10, 10, 10, 10, 10, 10, 6, 6, 6}));
}

// Each half of a block but the last one ends in the pass that begins the next.
TEST(Residuals, AreAddedWithTheNormThatFollows) {
  class Ops : public OpObserver {
   public:
    void before(std::string_view) override {}
    void after(const OpRecord& record) override { ++count[std::string(record.op)]; }
    std::map<std::string, int> count;
  };
  const auto backend = make_ref_backend();
  for (const bool int8 : {true, false}) {
    Denoising run(*backend, DType::f32, int8);
    const auto timeline = run.network.make_timeline(run.ctx, kTimes);
    Ops seen;
    backend->set_op_observer(&seen);
    run.velocity(*timeline, 0);
    backend->set_op_observer(nullptr);
    EXPECT_EQ(seen.count["residual"], 1 + 2 * 3);         // and the image's role
    EXPECT_EQ(seen.count["norm"], int8 ? 2 : 1 + 2 * 3);  // of the first block and of the exit
  }
}

// Weights of a block are gone when its residual is added.
// A few rows, a few more than all but one of them, and more than there are: 10 of the sequence, 6
// of which the last block has.
TEST(Rows, AFewAtATimeGiveTheSameBits) {
  for (const bool on_ref : {true, false}) {
    const auto backend = on_ref ? make_ref_backend() : make_cpu_backend({.threads = 3});
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const bool int8 : {true, false}) {
        Denoising run(*backend, dtype, int8);
        nn::Context few = run.ctx;
        for (const auto scores : {nn::AttentionScores::floating, nn::AttentionScores::int8,
                                  nn::AttentionScores::int8_full}) {
          run.ctx.scores = few.scores = scores;
          const std::vector<float> want = run.velocity_at(run.ctx, 0.3f);
          for (const int64_t rows : {1, 3, 9, 100}) {
            few.rows_at_once = rows;
            EXPECT_EQ(run.velocity_at(few, 0.3f), want)
                << backend->name() << " " << name_of(dtype) << " " << int8 << " " << rows;
          }
        }
      }
    }
  }
}

TEST(Residuals, NeedNoWeightsOfTheBlockBefore) {
  class Spoiler : public nn::WeightVisitor {
   public:
    void linear(nn::Linear&, const nn::LinearSpec&) override {}
    void conv(nn::Conv&, const nn::ConvSpec&) override {}
    void vector(nn::Vector& into, const std::string&, int64_t length) override {
      auto* values = reinterpret_cast<float*>(into.memory.data());
      std::fill_n(values, length, std::numeric_limits<float>::quiet_NaN());
    }
    void table(nn::Table&, const std::string&, int64_t, int64_t) override {}
  };
  const auto backend = make_ref_backend();
  Denoising run(*backend, DType::f32, /*int8=*/true);
  const auto timeline = run.network.make_timeline(run.ctx, kTimes);
  const std::vector<float> want = run.velocity(*timeline, 1);
  run.network.set_bring([&](int64_t unit) {
    Spoiler spoiler;
    if (unit > 0) run.network.visit(unit - 1, spoiler);
  });
  EXPECT_EQ(run.velocity(*timeline, 1), want);
}

// What prepares is not needed by passes, nor the other way round.
TEST(Timeline, TakesItsWeightsOnce) {
  const auto backend = make_ref_backend();
  Denoising run(*backend, DType::f32, /*int8=*/false);
  std::vector<int64_t> units;
  run.network.set_bring([&](int64_t unit) { units.push_back(unit); });
  const auto timeline = run.network.make_timeline(run.ctx, kTimes);
  EXPECT_EQ(units, (std::vector<int64_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(run.network.pass_units(), 5);
  for (const int64_t step : {0, 1}) {
    units.clear();
    run.velocity(*timeline, step);
    EXPECT_EQ(units, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  }
}

// A velocity that failed halfway, such as one that was cancelled, leaves a timeline that goes on.
TEST(Timeline, GoesOnAfterAFailure) {
  const auto backend = make_ref_backend();
  Denoising run(*backend, DType::f32, /*int8=*/false);
  const auto timeline = run.network.make_timeline(run.ctx, kTimes);
  run.network.set_bring([](int64_t unit) { check(unit != 2, "no unit 2"); });
  EXPECT_ERROR_WITH(run.velocity(*timeline, 0), "no unit 2");
  run.network.set_bring({});
  EXPECT_EQ(run.velocity(*timeline, 3), run.velocity_at(run.ctx, kTimes[3]));
}

TEST(Timeline, RefusesStepsThatItDoesNotHave) {
  const auto backend = make_ref_backend();
  Denoising run(*backend, DType::f32, /*int8=*/false);
  const auto timeline = run.network.make_timeline(run.ctx, kTimes);
  EXPECT_ERROR_WITH(timeline->go_to(run.ctx, 5), "step 5 of 5");
  EXPECT_ERROR_WITH(timeline->go_to(run.ctx, -1), "step -1 of 5");
}

}  // namespace
}  // namespace octet::test
