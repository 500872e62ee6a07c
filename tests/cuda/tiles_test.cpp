// The tile table. Needs no GPU.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "cuda/gemm/table.h"

namespace octet::cuda {
namespace {

template <TileClass C>
void expect_fit() {
  for (const Tile& tile : tiles_of<C>()) {
    // A kilobyte of shared memory goes to the system, as the limits already say; barriers and flags
    // of the kernel itself take another quarter.
    EXPECT_LE(tile.shared_bytes() + 256, shared_limit(C)) << name_of(tile);
    EXPECT_TRUE(tile.is_sound()) << name_of(tile);
  }
}

TEST(Tiles, FitTheSharedMemoryOfTheirClass) {
  expect_fit<TileClass::small>();
  expect_fit<TileClass::medium>();
  expect_fit<TileClass::large>();
  EXPECT_EQ(shared_limit(TileClass::small), 101376);
  EXPECT_EQ(shared_limit(TileClass::medium), 166912);
  EXPECT_EQ(shared_limit(TileClass::large), 232448);
}

TEST(Tiles, RegistersOfTheResidentBlocksFit) {
  constexpr int kRegisters = 65536;
  for (const GemmRow& row : gemm_rows()) {
    const Tile& tile = row.tile;
    const int sums = tile.warp_m() * tile.warp_n() / 32;
    const int available = kRegisters / (tile.threads() * tile.blocks_per_sm);
    EXPECT_LE(sums, std::min(available, 255) - 40) << row.name;
  }
}

TEST(Tiles, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const GemmCandidate& candidate : gemm_candidates()) {
    EXPECT_TRUE(names.insert(candidate.name).second) << candidate.name;
    EXPECT_EQ(&find_candidate(candidate.name), &candidate);
  }
  EXPECT_GE(names.size(), gemm_rows().size());
}

TEST(Tiles, NamesSayWhatTheFieldsSay) {
  EXPECT_EQ(name_of({256, 192, 128, 4, 4, 2, 1, 1}), "sm80_256x192x128_s4_w4x2");
  EXPECT_EQ(name_of({16, 64, 128, 8, 1, 2, 2, 2}), "sm80_16x64x128_s8_w1x2x2");
}

TEST(Tiles, UnknownNameIsRefusedWithTheKnownOnes) {
  try {
    find_candidate("sm80_1x1x1");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(gemm_rows()[0].name), std::string::npos);
  }
}

TEST(Tiles, BrokenRowsAreNotSound) {
  const Tile good = {128, 256, 64, 4, 2, 4, 1, 1};
  EXPECT_TRUE(good.is_sound());
  for (const auto change : {+[](Tile& t) { t.k = 96; }, +[](Tile& t) { t.stages = 2; },
                            +[](Tile& t) { t.m = 120; }, +[](Tile& t) { t.n = 176; },
                            +[](Tile& t) { t.warps_m = 3; }, +[](Tile& t) { t.warps_k = 4; }}) {
    Tile bad = good;
    change(bad);
    EXPECT_FALSE(bad.is_sound()) << name_of(bad);
  }
}

}  // namespace
}  // namespace octet::cuda
