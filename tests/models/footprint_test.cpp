// What the footprint counts against what an allocator says. A host's ops take nothing of the
// backend's memory for themselves, so that both are the same to the byte.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "models/family.h"
#include "models/footprint_run.h"
#include "models/ideogram4/transformer.h"
#include "models/qwen3/text_encoder.h"
#include "models/small_dit.h"

namespace octet::test {
namespace {

using models::Extent;
using models::Network;
using models::RunAs;

class Footprint : public testing::Test {
 protected:
  std::vector<Network*> networks() { return {&first_, &second_}; }

  std::unique_ptr<Backend> backend_ = make_cpu_backend({.threads = 1});
  // Wide where it multiplies, and wide in its text: each is the largest somewhere.
  ideogram4::Transformer first_{small_dit(2, 144), /*conditional=*/true};
  ideogram4::Transformer second_{small_dit(3, 72), /*conditional=*/false};
};

TEST_F(Footprint, DenoisingIsWhatTheAllocatorCounts) {
  const Extent extents[] = {{.grid = {4, 6}, .text_tokens = 5, .steps = 3},
                            {.grid = {1, 1}, .text_tokens = 90, .steps = 1},
                            {.grid = {6, 10}, .text_tokens = 0, .steps = 20}};
  for (const Extent& extent : extents) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      for (const auto& [int8, rows] : {std::pair(true, 0), {false, 0}, {true, 7}, {false, 1}}) {
        const RunAs how{.dtype = dtype, .int8 = int8, .rows_at_once = rows};
        SCOPED_TRACE(fmt::format("{} tokens, {}, int8 {}, {} rows at once", extent.grid.tokens(),
                                 name_of(dtype), int8, rows));
        const auto counted = models::denoising_bytes(networks(), extent, how);
        EXPECT_EQ(counted.all(), denoising_peak(*backend_, networks(), extent, how));
        EXPECT_EQ(models::denoising_bytes({networks().data(), 1}, extent, how).all(),
                  denoising_peak(*backend_, {&first_}, extent, how));
      }
    }
  }
}

TEST_F(Footprint, DenoisingHasItsParts) {
  const auto at = [&](const Extent& extent) {
    return models::denoising_bytes(networks(), extent, {.int8 = true});
  };
  const Extent usual{.grid = {8, 8}, .text_tokens = 16, .steps = 4};
  Extent longer = usual, larger = usual, more = usual, wordy = usual;
  longer.steps = 8;
  larger.grid = {16, 8};
  more.batch = 2;
  wordy.text_tokens = 32;
  const auto bytes = at(usual);
  EXPECT_GT(at(longer).timelines, bytes.timelines);
  EXPECT_EQ(at(longer).work, bytes.work);
  EXPECT_EQ(at(larger).latents, 2 * bytes.latents);
  EXPECT_GT(at(larger).work, bytes.work);
  EXPECT_GT(at(wordy).conditioning, bytes.conditioning);
  EXPECT_EQ(at(more).work, 2 * bytes.work);
  EXPECT_EQ(at(more).timelines, bytes.timelines);
}

TEST_F(Footprint, WeightsAreWhatTheAllocatorCounts) {
  for (const bool int8 : {true, false}) {
    const uint64_t before = backend_->memory().used;
    weights::RandomWeights make(*backend_, {.int8 = int8});
    first_.visit_all(make);
    const auto counted = models::weight_bytes(first_, {.int8 = int8}, backend_.get());
    EXPECT_EQ(counted.all, backend_->memory().used - before);
    EXPECT_LT(counted.largest_unit, counted.all);
    first_.release_all();
  }
}

TEST_F(Footprint, TextIsWhatTheAllocatorCounts) {
  qwen3::TextConfig config;
  config.layers = 4;
  config.hidden = 32;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.ffn = 80;
  config.vocabulary = 11;
  constexpr int64_t kTaps[] = {1, 3};
  qwen3::TextEncoder encoder(config, kTaps);
  for (const bool int8 : {true, false}) {
    for (const int64_t tokens : {1, 40}) {
      const RunAs how{.int8 = int8};
      const uint64_t counted = models::encoding_bytes(encoder, tokens, how);
      weights::RandomWeights make(*backend_, {.int8 = int8});
      encoder.visit_all(make);
      const uint64_t before = backend_->memory().used;
      backend_->reset_peak();
      nn::Context ctx{*backend_, how.dtype};
      encoder.encode(ctx, std::vector<int32_t>(static_cast<size_t>(tokens), 1), {});
      EXPECT_EQ(counted, backend_->memory().peak - before);
      encoder.release_all();
    }
  }
}

TEST(FootprintOfIdeogram4, IsLessForAFewRowsAtATime) {
  const models::Family& family = models::family_named("ideogram4");
  const auto network = family.synthetic_network(0, 1);
  Network* const networks[] = {network.get()};
  for (const bool int8 : {true, false}) {
    const auto work = [&](int64_t rows) {
      return models::denoising_bytes(networks, {.grid = {128, 128}, .text_tokens = 512},
                                     {.int8 = int8, .rows_at_once = rows})
          .work;
    };
    EXPECT_LT(work(4096), work(0));
    EXPECT_LT(work(1024), work(4096));
    EXPECT_LT(work(256), work(1024));
  }
}

// docs/deployment-map.md: measured on an H200, with what single ops took, and with rows that are
// released earlier since then, by count.
TEST(FootprintOfIdeogram4, IsBelowWhatAnH200MeasuredByItsOps) {
  const models::Family& family = models::family_named("ideogram4");
  const auto first = family.synthetic_network(0, 0), second = family.synthetic_network(1, 0);
  Network* const networks[] = {first.get(), second.get()};
  struct Measured {
    int64_t side;
    double bytes, released;
  };
  for (const auto& [side, measured, released] :
       {Measured{64, 0.5e9, 0.021e9}, Measured{128, 1.3e9, 0.134e9}}) {
    const models::Extent extent{.grid = {side, side}, .text_tokens = 512};
    const auto counted =
        released + static_cast<double>(models::denoising_bytes(networks, extent, {}).all());
    EXPECT_LT(counted, measured) << side;
    EXPECT_GT(counted + static_cast<double>(models::kOpsBytes), measured) << side;
  }
}

}  // namespace
}  // namespace octet::test
