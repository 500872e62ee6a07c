// The tile table. Needs no GPU.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "cuda/gemm/table.h"

namespace octet::cuda {
namespace {

// `besides`: barriers and flags that a kernel has outside what the row says.
template <TileClass C>
void expect_fit(int besides) {
  for (const auto& tile : tiles_of<C>()) {
    // A kilobyte of shared memory goes to the system, as the limits already say.
    EXPECT_LE(tile.shared_bytes() + besides, shared_limit(C)) << name_of(tile);
    EXPECT_TRUE(tile.is_sound()) << name_of(tile);
  }
}

TEST(Tiles, FitTheSharedMemoryOfTheirClass) {
  expect_fit<TileClass::small>(256);
  expect_fit<TileClass::medium>(256);
  expect_fit<TileClass::hopper>(0);
  EXPECT_EQ(shared_limit(TileClass::small), 101376);
  EXPECT_EQ(shared_limit(TileClass::medium), 166912);
  EXPECT_EQ(shared_limit(TileClass::hopper), 232448);
}

template <TileClass C>
void expect_registers_fit() {
  constexpr int kRegisters = 65536;
  for (const Tile& tile : tiles_of<C>()) {
    const int acc = tile.warp_m() * tile.warp_n() / 32;
    const int available = kRegisters / (tile.threads() * tile.blocks_per_sm);
    EXPECT_LE(acc, std::min(available, 255) - 40) << name_of(tile);
  }
}

TEST(Tiles, RegistersOfTheResidentBlocksFit) {
  expect_registers_fit<TileClass::small>();
  expect_registers_fit<TileClass::medium>();
  for (const HopperTile& tile : tiles_of<TileClass::hopper>()) {
    const int acc = tile.group_m() * tile.group_n() / 128;
    EXPECT_LE(acc, 240 - 40) << name_of(tile);
  }
}

// What the launcher is told about a row is what the row says.
TEST(Tiles, RowsDescribeTheirTiles) {
  const HopperTile hopper = {256, 192, 4, Sharing::cooperative, 2, 1, 1, 2, 2};
  const GemmRow row(hopper);
  EXPECT_TRUE(row.hopper && row.can_stream);
  EXPECT_EQ(row.worker_m(), 256);
  EXPECT_EQ(row.worker_n(), 384);
  EXPECT_EQ(row.threads, 384);
  EXPECT_EQ(row.teams, 4);
  EXPECT_EQ(row.read_bytes, 4 * (64 + 192) * 128);
  EXPECT_EQ(row.shared_bytes, 4 * (448 * 128 + 16) + (192 * 4 + 16) + 24);
  const GemmRow pingpong(HopperTile{128, 192, 5, Sharing::pingpong, 2, 1, 2, 1, 0});
  EXPECT_EQ(pingpong.worker_m(), 256);
  EXPECT_EQ(pingpong.shared_bytes, 5 * (320 * 128 + 16) + 2 * (192 * 4 + 16) + 24);
  EXPECT_EQ(pingpong.teams, 2);
  const GemmRow ampere(Tile{16, 64, 128, 8, 1, 2, 2, 2});
  EXPECT_FALSE(ampere.hopper || ampere.can_stream);
  EXPECT_EQ(ampere.worker_m(), 16);
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
  EXPECT_EQ(name_of(Tile{128, 256, 128, 3, 2, 4, 1, 1}), "sm80_128x256x128_s3_w2x4");
  EXPECT_EQ(name_of(Tile{16, 64, 128, 8, 1, 2, 2, 2}), "sm80_16x64x128_s8_w1x2x2");
  EXPECT_EQ(name_of(HopperTile{256, 192, 4, Sharing::cooperative, 2, 1, 1, 2, 2}),
            "sm90_256x192x128_s4_g2x1_c1x2_y2");
  EXPECT_EQ(name_of(HopperTile{128, 192, 5, Sharing::pingpong, 2, 1, 2, 1, 0}),
            "sm90_128x192x128_s5_pingpong2_c2x1");
  EXPECT_EQ(name_of(HopperTile{64, 64, 12, Sharing::cooperative, 1, 1, 1, 1, 0}),
            "sm90_64x64x128_s12_g1x1");
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

TEST(Tiles, BrokenHopperRowsAreNotSound) {
  const HopperTile good = {256, 192, 4, Sharing::cooperative, 2, 1, 1, 2, 2};
  EXPECT_TRUE(good.is_sound());
  for (const auto change :
       {+[](HopperTile& t) { t.stages = 1; }, +[](HopperTile& t) { t.m = 192; },
        +[](HopperTile& t) { t.n = 176; }, +[](HopperTile& t) { t.n = 320; },
        +[](HopperTile& t) { t.groups_m = 3; }, +[](HopperTile& t) { t.cluster_m = 2; },
        +[](HopperTile& t) { t.sharing = Sharing::pingpong; },
        +[](HopperTile& t) { t.groups_m = 1; }, +[](HopperTile& t) { t.stagger = t.stages; }}) {
    HopperTile bad = good;
    change(bad);
    EXPECT_FALSE(bad.is_sound()) << name_of(bad);
  }
}

}  // namespace
}  // namespace octet::cuda
