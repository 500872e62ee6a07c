// Numbers that the model is defined by: positions, times, statistics of latents, order of pixels.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/pixels.h"
#include "formats/error_message.h"
#include "models/flux2_vae/vae.h"
#include "models/ideogram4/dit.h"
#include "models/ideogram4/latent_statistics.h"
#include "support.h"

namespace octet::test {
using namespace octet::flux2_vae;
namespace {

using namespace ideogram4;  // NOLINT: this file is about it

std::vector<float> values_on(Backend& backend, const nn::Matrix& matrix) {
  nn::Context ctx{backend, DType::f32};
  std::vector<float> values(static_cast<size_t>(matrix.row_count() * matrix.column_count()));
  download_matrix(ctx, matrix, values.data());
  return values;
}

struct Turn {
  size_t frequency;
  double cos, sin;
};

// At angles of 65536 rad, cosine and sine tell whether frequency and product are the f32 numbers
// that they should be: one unit in the last place of either is a thousandth here.
constexpr double kLastDigit = 1e-6;

void expect_turns(const std::vector<float>& cos, const std::vector<float>& sin, size_t row,
                  const std::vector<Turn>& turns) {
  for (const Turn& turn : turns) {
    const size_t at = row * 128 + turn.frequency;
    EXPECT_NEAR(cos[at], turn.cos, kLastDigit) << "frequency " << turn.frequency;
    EXPECT_NEAR(sin[at], turn.sin, kLastDigit) << "frequency " << turn.frequency;
  }
}

TEST(Rotary, OfTheFirstAndTheLastTokenOf64x64) {
  const auto backend = make_ref_backend();
  nn::Context ctx{*backend, DType::f32};
  const Dit published;  // the prompt of an unconditional one takes no weights
  const DitPrompt prompt = prepare(ctx, published, {}, {64, 64});
  EXPECT_EQ(prompt.text_tokens(), 0);
  ASSERT_EQ(prompt.rotary.cos.row_count(), 4096);
  ASSERT_EQ(prompt.rotary.cos.column_count(), 128);
  const auto cos = values_on(*backend, prompt.rotary.cos);
  const auto sin = values_on(*backend, prompt.rotary.sin);
  expect_turns(cos, sin, 0,
               {{0, -0.7218348, 0.6920655},
                {1, 0.1669856, 0.9859593},
                {2, -0.9996114, -0.0278761},
                {58, -0.7610431, -0.6487014},
                {59, -0.9912591, -0.1319297},
                {60, -0.9436834, -0.3308499},
                {127, 0.9998907, 0.0147853}});
  // Row 63, column 63: the frequencies of the time axis turn no further.
  expect_turns(cos, sin, 4095,
               {{0, -0.7218348, 0.6920655},
                {1, 0.7635436, 0.6457562},
                {2, -0.7453143, 0.6667133},
                {58, -0.7221185, -0.6917694},
                {59, -0.9831593, -0.1827505},
                {60, -0.9436834, -0.3308499}});
  // Row 0, column 63: of the two axes of an image only the columns' turns.
  expect_turns(cos, sin, 63, {{1, 0.1669856, 0.9859593}, {2, -0.7453143, 0.6667133}});
}

// t = 0.5 is 5000 rad. The frequencies are rounded to f32, 5000 of which are 3e-4.
TEST(TimeEmbedding, HasTheSinesFirst) {
  constexpr int64_t kHalf = 2304;
  std::vector<float> frequencies;
  for (int64_t i = 0; i < kHalf; ++i) {
    frequencies.push_back(
        static_cast<float>(std::exp(-static_cast<double>(i) * std::log(1e4) / (kHalf - 1))));
  }
  for (const bool on_cpu : {false, true}) {
    const auto backend = on_cpu ? make_cpu_backend() : make_ref_backend();
    const nn::Matrix waves(*backend, DType::f32, 1, 2 * kHalf);
    const OnDevice uploaded(*backend, frequencies);
    const float angle = 5000;
    backend->sinusoids({&angle, 1}, uploaded(vector_view(frequencies)), waves);
    const auto values = values_on(*backend, waves);
    EXPECT_NEAR(values[0], -0.987966, 1e-6);
    EXPECT_NEAR(values[kHalf], 0.154668, 1e-6);
    EXPECT_NEAR(values[1], -0.580303, 3e-4);
    EXPECT_NEAR(values[kHalf + 1], -0.814400, 3e-4);
    EXPECT_NEAR(values[kHalf - 1], 0.479425, 1e-6);
    EXPECT_NEAR(values[2 * kHalf - 1], 0.877583, 1e-6);
  }
}

// All numbers of both tables are compared by tests/python/test_goldens.py.
TEST(LatentStatistics, ArePublishedFor128Channels) {
  const LatentStatistics published = ideogram4::published_statistics();
  ASSERT_EQ(published.shift.size(), 128u);
  ASSERT_EQ(published.scale.size(), 128u);
  EXPECT_EQ(published.shift[0], 0.01984364f);
  EXPECT_EQ(published.shift[32], 0.02583857f);
  EXPECT_EQ(published.scale[127], 1.68533454f);
}

// Channels of a token are (row, column, channel) of its two by two pixels.
TEST(Unpatchify, LaysTokensOutAsPixels) {
  const LatentStatistics plain{std::vector<float>(8, 0), std::vector<float>(8, 1)};
  std::vector<float> z;  // token 0 has 0 .. 7, token 1 has 10 .. 17
  for (const float token : {0.0f, 10.0f}) {
    for (int at = 0; at < 8; ++at) z.push_back(token + static_cast<float>(at));
  }
  const std::vector<float> side_by_side = {0, 1, 2, 3, 10, 11, 12, 13, 4, 5, 6, 7, 14, 15, 16, 17};
  EXPECT_EQ(flux2_vae::unpatchify(z, plain, 1, 2), side_by_side);
  const std::vector<float> stacked = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17};
  EXPECT_EQ(flux2_vae::unpatchify(z, plain, 2, 1), stacked);
}

TEST(Unpatchify, UndoesTheNormalisationPerChannelOfAToken) {
  const LatentStatistics statistics{{1, 2, 3, 4}, {10, 20, 30, 40}};
  EXPECT_EQ(flux2_vae::unpatchify(std::vector<float>{1, 1, 1, -1}, statistics, 1, 1),
            (std::vector<float>{11, 22, 33, -36}));
}

TEST(Unpatchify, RefusesALatentOfAnotherSize) {
  const LatentStatistics statistics{std::vector<float>(4), std::vector<float>(4)};
  const std::vector<float> latent = {1, 2, 3};
  EXPECT_ERROR_WITH(flux2_vae::unpatchify(latent, statistics, 1, 1), "3 numbers");
}

TEST(ToBytes, ClampsAndRoundsToTheNearest) {
  // 0 is 127.5 exactly, the only tie; the last two are 1.49 and 1.51.
  const std::vector<float> image = {-1, 1, -7, 7, 0, 1.49f / 127.5f - 1, 1.51f / 127.5f - 1};
  EXPECT_EQ(engine::to_bytes(image), (std::vector<uint8_t>{0, 255, 0, 255, 128, 1, 2}));
}

}  // namespace
}  // namespace octet::test
