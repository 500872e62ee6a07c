// The images that decoding holds at a time are those that the plan counts, and no more.
#include "models/decode_memory.h"

#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"

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

TEST(DecodeMemory, IsWhatThePlanCounts) {
  const auto backend = make_cpu_backend({.threads = 2});
  for (const VaeConfig& config :
       {small_vae({8, 16, 32, 32}, 3, true), small_vae({32, 8}, 1, true),
        small_vae({8, 64}, 2, false), small_vae({16}, 1, false), small_vae({8, 8, 128}, 2, true)}) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      SCOPED_TRACE(fmt::format("{} levels, first {}, {}", config.channels.size(),
                               config.channels.front(), name_of(dtype)));
      EXPECT_EQ(decode_randomly(*backend, config, 6, 10, dtype).peak,
                flux2_vae::image_bytes(config, 6, 10, dtype));
    }
  }
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
}

}  // namespace
}  // namespace octet::test
