// The memory of whole pictures: what the footprint counts against what the engine's report says.
#include "models/footprint.h"

#include "devices/select.h"
#include "engine/toy_fixture.h"
#include "engine/work_bytes.h"

namespace octet::test {
namespace {

using PictureFootprint = ToyFamily;

// The sampler has a few numbers more, and one velocity where nothing is guided.
constexpr double kTolerance = 0.03;

TEST_F(PictureFootprint, IsWhatTheReportSays) {
  const models::Family& family = toy_family();
  const auto backend = select_backend({.device = "cpu", .threads = 1});
  for (const int side : {16, 32, 64}) {
    for (const Linears linears : {Linears::int8, Linears::floating}) {
      ModelOptions asked = options();
      asked.linears = linears;
      asked.text_encoder_linears = Linears::floating;
      PictureRequest picture = request();
      picture.size = {side, side};
      const RenderReport report = render(asked, picture).report;

      const models::Model model = family.open(family.find({.model = model_}), {});
      const models::RunAs how{.int8 = linears == Linears::int8}, floating{.int8 = false};
      models::Network* const networks[] = {model.networks.front().get()};
      const int64_t tokens = side / ToyShape::kTokenSide;
      const models::Extent extent{
          .grid = {tokens, tokens}, .text_tokens = report.text_tokens, .steps = report.steps};
      const auto weights = [&](models::Part& part, const models::RunAs& as) {
        return models::weight_bytes(part, as, backend.get()).all;
      };
      const uint64_t denoising = models::denoising_bytes(networks, extent, how).all();
      const auto counted =
          static_cast<double>(weights(*networks[0], how) + weights(*model.text_encoder, floating) +
                              weights(*model.decoder, floating) + denoising);
      EXPECT_NEAR(static_cast<double>(report.peak_bytes) / counted, 1, kTolerance) << side;
      // So that weights alone would not do.
      EXPECT_GT(static_cast<double>(denoising), 4 * kTolerance * counted) << side;
    }
  }
}

// What is reckoned from a few counts, against the count itself.
TEST_F(PictureFootprint, OfAnySizeFollowsFromAFewCounts) {
  models::Model model = toy_family().open(toy_family().find({.model = model_}), {});
  const models::RunAs how{.int8 = true}, floating{.int8 = false};
  std::vector<models::Network*> networks;
  for (const auto& network : model.networks) networks.push_back(network.get());
  const engine::WorkBytes work(model, networks, how, floating);
  for (const models::Grid grid : {models::Grid{8, 8}, {16, 48}, {300, 200}}) {
    for (const int64_t words : {10, 100, 2000}) {
      const models::Extent extent{.grid = grid, .text_tokens = words, .steps = 20};
      const models::DenoisingBytes step = models::denoising_bytes(networks, extent, how);
      const uint64_t text = models::encoding_bytes(*model.text_encoder, words, floating);
      const uint64_t counted = std::max(
          std::max(step.all(), text) + models::kOpsBytes,
          step.all() - step.work + models::decoding_bytes(*model.decoder, grid, how.dtype));
      // Beside the constant, which would hide any error of the rest. Blocks of memory are rounded.
      EXPECT_NEAR(static_cast<double>(work.of(extent) - models::kOpsBytes) /
                      static_cast<double>(counted - models::kOpsBytes),
                  1, 0.02)
          << grid.height << " x " << grid.width << ", " << words;
      models::Extent twice = extent;
      twice.batch = 2;
      EXPECT_GE(work.of(twice), work.of(extent));
    }
  }
}

// A linear that a plan has in floating point takes its input as it is.
TEST_F(PictureFootprint, FollowsWhatRunsInFloatingPoint) {
  const models::Model model = toy_family().open(toy_family().find({.model = model_}), {});
  models::Network* const networks[] = {model.networks.front().get()};
  const models::Extent extent{.grid = {16, 16}, .text_tokens = 8};
  const auto work = [&](const models::RunAs& how) {
    return models::denoising_bytes(networks, extent, how).work;
  };
  const auto all = [](const nn::LinearSpec& spec) { return spec.large; };
  EXPECT_EQ(work({.floating = all}), work({.int8 = false}));
  EXPECT_LT(work({.int8 = true}), work({.int8 = false}));
}

}  // namespace
}  // namespace octet::test
