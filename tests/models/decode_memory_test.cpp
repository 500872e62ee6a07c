// The images that decoding holds at a time are those that the plan counts, and no more.
#include "models/decode_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/cpu_backend.h"
#include "ref/ref_backend.h"
#include "support.h"

namespace octet::test {
namespace {

using flux2_vae::VaeConfig;

VaeConfig small_vae(std::vector<int64_t> channels, int64_t resnets, bool attention) {
  VaeConfig config;
  config.latent_channels = 4;
  config.channels = std::move(channels);
  config.resnets = resnets;
  config.groups = 4;
  config.mid_attention = attention;
  config.post_quant_conv = attention;
  return config;
}

const std::vector<VaeConfig>& small_vaes() {
  static const std::vector<VaeConfig> made = {
      small_vae({8, 16, 32, 32}, 3, true), small_vae({32, 8}, 1, true),
      small_vae({8, 64}, 2, false), small_vae({16}, 1, false), small_vae({8, 8, 128}, 2, true)};
  return made;
}

TEST(DecodeMemory, IsWhatThePlanCounts) {
  const auto backend = make_cpu_backend({.threads = 2});
  for (const VaeConfig& config : small_vaes()) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      SCOPED_TRACE(fmt::format("{} levels, first {}, {}", config.channels.size(),
                               config.channels.front(), name_of(dtype)));
      EXPECT_EQ(decode_randomly(*backend, config, 6, 10, dtype).peak,
                flux2_vae::image_bytes(config, 6, 10, dtype));
    }
  }
}

// Each bound from the least one on gives the picture of whole images, to the bit, and is kept.
void expect_bounds_kept(Backend& backend, const VaeConfig& config, DType dtype) {
  SCOPED_TRACE(fmt::format("{} levels, first {}, {}", config.channels.size(),
                           config.channels.front(), name_of(dtype)));
  constexpr int64_t kHeight = 6, kWidth = 10;
  const uint64_t whole = flux2_vae::image_bytes(config, kHeight, kWidth, dtype);
  const uint64_t least = flux2_vae::bytes_in_strips(config, kHeight, kWidth, dtype).least;
  const auto decode = [&](uint64_t bound) {
    return decode_randomly(backend, config, kHeight, kWidth, dtype, bound);
  };
  const UnsetVector<float> want = decode(0).image;
  EXPECT_GT(std::ranges::max(want), std::ranges::min(want));
  // Unless the middle, which is always whole, is wider than all that follows.
  EXPECT_EQ(least < whole, config.channels.size() > 1 && config.channels.back() < 128);
  for (const uint64_t bound :
       {least, least + (whole - least) / 5, least + (whole - least) / 2, whole - 1, whole}) {
    if (bound < least) continue;  // one that has nothing to gain
    const DecodingUse use = decode(bound);
    EXPECT_EQ(use.image, want) << bound << " of " << least << " to " << whole;
    EXPECT_LE(use.peak, bound);
  }
  EXPECT_EQ(decode(least).peak, least);
  EXPECT_ERROR_WITH(decode(least - 1), fmt::format("at least {} bytes for images", least));
}

TEST(DecodeMemory, BoundsAreKeptWithTheSamePicture) {
  const auto backend = make_cpu_backend({.threads = 2});
  for (const VaeConfig& config : small_vaes()) {
    for (const DType dtype : {DType::bf16, DType::f32}) expect_bounds_kept(*backend, config, dtype);
  }
}

TEST(DecodeMemory, BoundsAreKeptByTheReference) {
  expect_bounds_kept(*make_ref_backend(), small_vae({8, 16, 16}, 2, true), DType::bf16);
}

// Twice its widest image, 256 channels of all pixels.
TEST(DecodeMemory, OfThePublishedModel) {
  const VaeConfig published;
  const auto bytes_at = [&](int64_t side) {
    return flux2_vae::image_bytes(published, side / 8, side / 8, DType::bf16);
  };
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(bytes_at(1024), (512 + 2 * 256 + 1) * kMiB);  // x, shortcut, inner; the latent
  EXPECT_EQ(bytes_at(2048), 4 * bytes_at(1024));
  const auto strips_at = [&](int64_t side) {
    return flux2_vae::bytes_in_strips(published, side / 8, side / 8, DType::bf16);
  };
  // A shortcut's product of 128 MiB of sums at a time: 256 channels, and 128 of the result.
  EXPECT_EQ(strips_at(1024).exact, (128 + 64 + 1) * kMiB);
  // The middle's attention, five images of 512 channels at the latent's size.
  EXPECT_EQ(strips_at(1024).least, (5 * 16 + 1) * kMiB);
  EXPECT_EQ(strips_at(2048).least, 4 * strips_at(1024).least);
  EXPECT_EQ(strips_at(2048).exact, strips_at(2048).least);
}

}  // namespace
}  // namespace octet::test
