// predict: the model follows the hardware that it is told of, and agrees with what was measured.
#include "measure/predict/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/predict/calibration.h"
#include "measure/predict/card_ratio.h"
#include "measure/predict/step.h"
#include "octet/error.h"
#include "octet/tools/predict.h"

namespace octet::predict {
namespace {

double product_us_on(const Card& card, Path path, Load load = Load::steady, int64_t m = 4096) {
  return product_time(card, calibrated(), path, load, m, 13824, 4608).us;
}

TEST(PredictModel, MoreOfAnythingIsNeverSlower) {
  const Card& card = card_of("rtx3090");
  const double before = product_us_on(card, Path::int8);
  for (const auto change : {&Card::boost_ghz, &Card::int8_mma, &Card::memory_gbs,
                            &Card::l2_bytes_per_clock, &Card::watts}) {
    Card better = card;
    better.*change *= 2;
    EXPECT_LE(product_us_on(better, Path::int8), before);
    Card worse = card;
    worse.*change /= 16;
    EXPECT_GT(product_us_on(worse, Path::int8), before);
  }
}

TEST(PredictModel, WithoutPauseIsNeverFaster) {
  for (const Card& card : cards()) {
    for (const Path path : {Path::bf16, Path::fp8, Path::nf4, Path::fake}) {
      EXPECT_GE(product_us_on(card, path, Load::steady), product_us_on(card, path, Load::cold))
          << card.id;
    }
  }
}

TEST(PredictModel, TheClockFollowsTheCubeRootOfWhatIsAllowed) {
  Card card;
  card.watts = 100;
  const Coefficients coefficients;
  const double allowed = 100 * (1 - kConstantPower);
  EXPECT_DOUBLE_EQ(clock_share(card, coefficients, Load::steady, allowed, 1), 1);
  EXPECT_DOUBLE_EQ(clock_share(card, coefficients, Load::steady, allowed / 2, 1), 1);
  EXPECT_DOUBLE_EQ(clock_share(card, coefficients, Load::steady, allowed * 8, 1), 0.5);
  EXPECT_GT(clock_share(card, coefficients, Load::cold, allowed * 8, 1), 0.5);
}

TEST(PredictModel, TakesTilesThatTheCardHas) {
  for (const Card& card : cards()) {
    const LinearTime time =
        product_time(card, calibrated(), Path::int8, Load::steady, 4096, 13824, 4608);
    EXPECT_EQ(time.tile.starts_with("sm90"), card.has_wgmma()) << card.id << ": " << time.tile;
    for (const GpuTile& tile : gpu_tiles()) {
      if (is_available(tile, card)) {
        EXPECT_LE(tile.shared_bytes, card.shared_block_bytes) << card.id << ": " << tile.name;
      }
    }
  }
}

TEST(PredictModel, CountsTilesAndBytesAsTheSchedulerDoes) {
  Card card = card_of("rtx3090");
  card.multiprocessors = 10;
  card.l2_bytes = 1e12;  // all rows in one group
  const GpuTile* tile = nullptr;
  for (const GpuTile& row : gpu_tiles()) {
    if (row.name == "sm80_128x256x64_s4_w2x4") tile = &row;
  }
  ASSERT_TRUE(tile);
  const Coefficients coefficients;
  const auto clocks = [&](int64_t m) {
    return tile_clocks(*tile, false, card, coefficients, m, 2560, 6400, true);
  };
  // Ten tiles side by side fill the card; one row more is a second round.
  EXPECT_DOUBLE_EQ(clocks(129).clocks, 2 * clocks(128).clocks);
  EXPECT_DOUBLE_EQ(clocks(128).operations, 2.0 * 128 * 2560 * 6400);
  EXPECT_DOUBLE_EQ(clocks(1).operations, clocks(128).operations);
  EXPECT_DOUBLE_EQ(clocks(128).fetched, 10.0 * (128 + 256) * 6400);
  EXPECT_DOUBLE_EQ(clocks(128).memory, 128.0 * 6400 + 2560.0 * 6400 + 2.0 * 128 * 2560);
}

TEST(PredictModel, OtherPathsPayForTheirPasses) {
  for (const Card& card : cards()) {
    const double bf16 = product_us_on(card, Path::bf16);
    EXPECT_GT(product_us_on(card, Path::nf4), bf16) << card.id;
    EXPECT_GT(product_us_on(card, Path::fake), product_us_on(card, Path::nf4)) << card.id;
    const bool is_before_ada = card.major == 7 || (card.major == 8 && card.minor < 9);
    EXPECT_EQ(product_us_on(card, Path::fp8) == 0, is_before_ada) << card.id;
    EXPECT_EQ(product_us_on(card, Path::int8) == 0, !card.not_run.empty()) << card.id;
  }
}

TEST(PredictModel, AStepIsTheSumOfItsBranches) {
  const Card& card = card_of("rtx4090");
  const StepTime with_text = step_time(card, calibrated(), "int8", 1024, 512);
  const StepTime without = step_time(card, calibrated(), "int8", 1024, 0);
  EXPECT_GT(with_text.ms(), without.ms());
  EXPECT_DOUBLE_EQ(with_text.ms(),
                   with_text.linears_ms + with_text.attention_ms + with_text.rows_ms);
  EXPECT_EQ(step_time(card_of("a100"), calibrated(), "fp8", 1024, 512).ms(), 0);
  EXPECT_THROW(step_time(card, calibrated(), "int4", 1024, 512), Error);
}

// As docs/memory_and_speed.md has it from an H200: 20.4 and 22.0 GB for both networks. Steps took
// more then: 0.1 GB, and at 2048 px 0.1 GB of rows, which count twice.
TEST(PredictModel, MemoryIsThatOfTheDocuments) {
  EXPECT_NEAR(memory_bytes("int8", 1024, true), 20.4e9, 0.25e9);
  EXPECT_NEAR(memory_bytes("int8", 1024, false), 11.0e9, 0.25e9);
  EXPECT_NEAR(memory_bytes("int8", 2048, true), 21.7e9, 0.25e9);
  EXPECT_NEAR(memory_bytes("int8", 2048, false), 12.3e9, 0.25e9);
  const auto rows = predict_memory({1024});
  ASSERT_EQ(rows.front().path, "int8");
  EXPECT_EQ(rows.front().fits_both, (std::vector<int>{24, 32, 48, 80}));
  EXPECT_EQ(rows.front().fits_one, (std::vector<int>{12, 16, 24, 32, 48, 80}));
  // 7.44 GB and the reserve are more than 8 * 10^9 bytes: cards are counted as `octet map` does.
  ASSERT_EQ(rows[3].path, "nf4");
  EXPECT_EQ(rows[3].fits_one, rows.front().fits_one);
}

TEST(PredictModel, RatiosAreOfKnownCardsAndShapes) {
  const auto ratio = int8_ratio("NVIDIA GeForce RTX 3090", 4096, 13824, 4608);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->card, "NVIDIA GeForce RTX 3090");
  EXPECT_FALSE(ratio->measured);
  EXPECT_GT(ratio->bf16, 2);
  EXPECT_GT(ratio->fake, ratio->bf16);
  EXPECT_EQ(ratio->fp8, 0);
  const auto here = int8_ratio("NVIDIA H200", 4096, 13824, 4608);
  ASSERT_TRUE(here);
  EXPECT_TRUE(here->measured);
  EXPECT_NEAR(here->bf16, 2, 0.3);
  EXPECT_FALSE(int8_ratio("h200", 4096, 13824, 100)->measured);
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    EXPECT_FALSE(int8_ratio("h200", wrong, 4608, 4608));
    EXPECT_FALSE(int8_ratio("h200", 4096, wrong, 4608));
    EXPECT_FALSE(int8_ratio("h200", 4096, 4608, wrong));
  }
  EXPECT_FALSE(int8_ratio("AMD Radeon", 4096, 4608, 4608));
  for (const Card& card : cards()) {
    for (const int64_t side : {int64_t{1}, int64_t{1} << 24}) {
      const auto extreme = int8_ratio(card.id, side, side, side);
      ASSERT_EQ(extreme.has_value(), card.not_run.empty()) << card.id;
      if (!extreme) continue;
      EXPECT_TRUE(std::isfinite(extreme->bf16) && extreme->bf16 > 0) << card.id << " " << side;
    }
  }
}

}  // namespace
}  // namespace octet::predict
