// The map from latents to the colours of previews.
#include "engine/preview.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/pixels.h"
#include "ref/ref_backend.h"

namespace octet::test {
namespace {

constexpr int64_t kChannels = 6, kSide = 4;

// A decoder that is a linear map already: red is channel 0, green half of 1 less 2, blue constant.
class LinearDecoder : public models::Decoder {
 public:
  std::string_view name() const override { return "decoder"; }
  int64_t unit_count() const override { return 0; }
  void visit(int64_t, nn::WeightVisitor&) override {}
  void release(int64_t) override {}
  bool is_ignored(std::string_view) const override { return false; }
  int64_t token_side() const override { return kSide; }
  int64_t latent_channels() const override { return kChannels; }
  uint64_t image_bytes(const models::Grid&, DType) const override { return 0; }
  UnsetVector<float> decode(nn::Context&, std::span<const float> latent, const models::Grid& grid,
                            const std::function<void(double)>&) const override {
    const int64_t width = grid.width * kSide, height = grid.height * kSide;
    UnsetVector<float> pixels;
    for (int64_t at = 0; at < width * height; ++at) {
      const int64_t token = at / width / kSide * grid.width + at % width / kSide;
      const float* z = latent.data() + token * kChannels;
      pixels.insert(pixels.end(), {z[0], 0.5f * z[1] - z[2], 0.25f});
    }
    return pixels;
  }
};

TEST(Preview, FindsTheMapOfALinearDecoder) {
  const auto backend = make_ref_backend();
  nn::Context ctx{*backend, DType::f32};
  const engine::PreviewMap map(ctx, LinearDecoder());
  const std::vector<float>& weights = map.weights();
  ASSERT_EQ(weights.size(), static_cast<size_t>((kChannels + 1) * 3));
  const auto weight = [&](int64_t channel, int64_t colour) {
    return weights[static_cast<size_t>(channel * 3 + colour)];
  };
  // The ridge pulls everything towards zero by a twentieth.
  constexpr float kRidge = 0.06f;
  EXPECT_NEAR(weight(0, 0), 1, kRidge);
  EXPECT_NEAR(weight(1, 1), 0.5f, kRidge);
  EXPECT_NEAR(weight(2, 1), -1, kRidge);
  EXPECT_NEAR(weight(kChannels, 2), 0.25f, kRidge);
  EXPECT_NEAR(weight(3, 0), 0, kRidge);
  EXPECT_NEAR(weight(0, 2), 0, kRidge);
}

TEST(Preview, IsOnePixelPerToken) {
  // One channel: red rises with it, green falls, blue stays.
  const engine::PreviewMap map({1, -1, 0, 0, 0, 0});
  const std::vector<float> latent = {-1, 0.5f, 3};
  EXPECT_EQ(map.rgb(latent),
            engine::to_bytes(std::vector<float>{-1, 1, 0, 0.5f, -0.5f, 0, 3, -3, 0}));
}

}  // namespace
}  // namespace octet::test
