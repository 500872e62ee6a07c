// predict: the data files, and who is who among cards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "devices/gpu_tiles.h"
#include "formats/json.h"
#include "measure/predict/card.h"
#include "octet/error.h"
#include "octet/tools/predict.h"

namespace octet::predict {
namespace {

TEST(PredictCards, EveryConstantHasItsSource) {
  const nlohmann::json& sources = cards_data().at("sources");
  for (const auto& [name, source] : sources.items()) {
    const auto text = source.get<std::string>();
    EXPECT_TRUE(text.starts_with("https://") || text.starts_with("estimate") ||
                text.starts_with("measured"))
        << name << ": " << text;
  }
  const nlohmann::json& checked = cards_data().at("checked");
  std::set<std::string> ids;
  for (const nlohmann::json& card : cards_data().at("cards")) {
    for (const nlohmann::json& name :
         checked.at(card.at("id").get<std::string>()).at("not_found")) {
      EXPECT_TRUE(card.contains(name.get<std::string>())) << card.at("id") << " " << name;
    }
    EXPECT_TRUE(ids.insert(card.at("id").get<std::string>()).second);
    for (const auto& [name, value] : card.items()) {
      if (name == "id" || name == "name" || name == "names" || name == "compute" ||
          name == "not_run") {
        continue;
      }
      ASSERT_TRUE(value.is_array() && value.size() == 2) << card.at("id") << " " << name;
      EXPECT_TRUE(value[0].is_number()) << card.at("id") << " " << name;
      EXPECT_TRUE(sources.contains(value[1].get<std::string>())) << card.at("id") << " " << name;
    }
  }
}

TEST(PredictCards, RatesAreThePublishedOnes) {
  const auto tops = [](const char* id, double Card::*rate) {
    const Card& card = card_of(id);
    return std::round(card.*rate * card.multiprocessors * card.boost_ghz * 1e-3);
  };
  EXPECT_EQ(tops("rtx3090", &Card::int8), 285);
  EXPECT_EQ(tops("rtx3090", &Card::bf16), 71);
  EXPECT_EQ(tops("rtx4090", &Card::int8), 661);
  EXPECT_EQ(tops("rtx4090", &Card::bf16), 165);
  EXPECT_EQ(tops("rtx4090", &Card::fp8), 330);
  EXPECT_EQ(tops("rtx5090", &Card::int8), 838);
  EXPECT_EQ(tops("a100", &Card::int8), 624);
  EXPECT_EQ(tops("a100", &Card::bf16), 312);
  EXPECT_EQ(tops("l40s", &Card::int8), 733);
}

TEST(PredictCards, AreFoundAsDriversCallThem) {
  const auto id_of = [](const char* device) {
    const Card* card = find_card(device);
    return card ? card->id : std::string("none");
  };
  EXPECT_EQ(id_of("rtx3090"), "rtx3090");
  EXPECT_EQ(id_of("RTX3090"), "rtx3090");
  EXPECT_EQ(id_of("NVIDIA GeForce RTX 3090"), "rtx3090");
  EXPECT_EQ(id_of("NVIDIA GeForce RTX 4060 Ti"), "rtx4060ti");
  EXPECT_EQ(id_of("NVIDIA GeForce RTX 3060"), "rtx3060");
  EXPECT_EQ(id_of("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(id_of("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(id_of("NVIDIA H200"), "h200");
  EXPECT_EQ(id_of("NVIDIA RTX A6000"), "a6000");
  EXPECT_EQ(id_of("NVIDIA B200"), "b200");
  EXPECT_EQ(id_of("NVIDIA L40S"), "l40s");
  EXPECT_EQ(id_of("3090"), "rtx3090");
  EXPECT_EQ(id_of("GeForce 4090"), "rtx4090");
  EXPECT_EQ(id_of("RTX 4080"), "rtx4080");
  EXPECT_EQ(id_of("4060ti"), "rtx4060ti");
  EXPECT_EQ(id_of("2080 Ti"), "rtx2080ti");
  EXPECT_EQ(id_of("Tesla T4"), "t4");
  EXPECT_EQ(id_of("NVIDIA L4"), "l4");
  EXPECT_EQ(id_of("AMD Instinct MI300X"), "mi300x");
  // Relatives with other constants.
  for (const char* other :
       {"3090 Ti", "3090ti", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 3060 Ti",
        "NVIDIA GH200 480GB", "NVIDIA H100 PCIe", "NVIDIA A100-PCIE-40GB",
        "NVIDIA GeForce RTX 4090 D", "NVIDIA L40", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA H200 NVL", "NVIDIA RTX 6000 Ada Generation", "NVIDIA GB200", "GeForce", "", " ",
        "\xff\xfe"}) {
    EXPECT_EQ(id_of(other), "none") << other;
  }
  EXPECT_FALSE(find_card(std::string(1 << 20, 'a')));
}

TEST(PredictCards, AnUnknownOneIsRefusedWithTheKnown) {
  try {
    predict_cards({.cards = {"rtx3091"}});
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("\"rtx3091\""), text.npos) << text;
    EXPECT_NE(text.find("perhaps rtx3090"), text.npos) << text;
    EXPECT_NE(text.find("b200"), text.npos) << text;
  }
  EXPECT_THROW(predict_cards({.cards = {""}}), Error);
  EXPECT_THROW(predict_cards({.sizes = {1000}}), Error);
  EXPECT_THROW(predict_cards({.sizes = {1 << 20}}), Error);
  EXPECT_THROW(predict_cards({.text_tokens = -1}), Error);
  EXPECT_THROW(predict_memory({0}), Error);
}

TEST(PredictCards, AllArePredicted) {
  const auto all = predict_cards({.sizes = {1024}});
  ASSERT_EQ(all.size(), known_cards().size());
  for (const CardPrediction& card : all) {
    EXPECT_EQ(card.is_measured, card.card == "h200");
    const auto& estimates = card.estimates;
    EXPECT_EQ(std::count(estimates.begin(), estimates.end(), "int8_mma"), card.card == "b200");
    EXPECT_EQ(std::count(estimates.begin(), estimates.end(), "multiprocessors"), 0);
    const bool has_the_measured_chip = card.card == "h100" || card.card == "h200";
    EXPECT_EQ(std::count(estimates.begin(), estimates.end(), "energy"), !has_the_measured_chip);
    ASSERT_EQ(card.linears.size(), 4u);
    ASSERT_EQ(card.steps.size(), 1u);
    ASSERT_EQ(card.pictures.size(), 3u);
    EXPECT_DOUBLE_EQ(card.pictures[0].int8_s * 1e3, 12 * card.steps[0].int8_ms);
    for (const PredictedLinear& linear : card.linears) {
      EXPECT_EQ(linear.shape.m, 4096);
      EXPECT_GT(linear.bf16_us, 0);
      if (!card.not_run.empty()) {
        EXPECT_EQ(linear.int8_us, 0);
        EXPECT_NE(linear.best, "int8");
        continue;
      }
      EXPECT_GT(linear.int8_us, 0);
      EXPECT_FALSE(linear.tile.empty());
    }
  }
}

TEST(PredictCards, EachIsPredictedOnceByAnyOfItsNames) {
  const auto some = predict_cards(
      {.cards = {"RTX3090", "NVIDIA A100-SXM4-80GB", "rtx3090", "a100"}, .sizes = {256}});
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].card, "rtx3090");
  EXPECT_EQ(some[1].card, "a100");
}

TEST(PredictCards, PublicFiguresHaveSourcesAndErrors) {
  const auto figures = check_public_figures();
  EXPECT_GT(figures.size(), 20u);
  for (const PublicFigure& figure : figures) {
    EXPECT_TRUE(figure.source.starts_with("https://") || figure.source.starts_with("docs/"))
        << figure.what;
    EXPECT_GT(figure.published, 0) << figure.what;
    EXPECT_GT(figure.predicted, 0) << figure.what;
    EXPECT_DOUBLE_EQ(figure.error, figure.predicted / figure.published - 1) << figure.what;
  }
}

TEST(GpuTiles, AreThoseOfTheTable) {
  std::set<std::string> names;
  for (const GpuTile& tile : gpu_tiles()) {
    EXPECT_TRUE(names.insert(tile.name).second) << tile.name;
    EXPECT_LE(tile.shared_bytes, gpu_tile_class_bytes(tile.tile_class)) << tile.name;
  }
  EXPECT_TRUE(names.contains("sm80_128x256x64_s4_w2x4"));
  EXPECT_TRUE(names.contains("sm80_16x64x128_s8_w1x2x2"));
  EXPECT_TRUE(names.contains("sm90_128x192x128_s5_pingpong2_c2x1"));
  EXPECT_TRUE(names.contains("sm90_256x192x128_s4_g2x1_c1x2_y2"));
}

}  // namespace
}  // namespace octet::predict
