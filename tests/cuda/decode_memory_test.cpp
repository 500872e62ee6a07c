// A GPU's memory while the published VAE decodes: the images that the plan counts, and what single
// ops take for themselves.
#include "models/decode_memory.h"

#include <cmath>

#include "cuda_support.h"
#include "models/footprint.h"

namespace octet::test {
namespace {

class DecodeMemoryOnGpu : public OnGpu {};

TEST_F(DecodeMemoryOnGpu, StaysBelowThreeGigabytesAt1024Pixels) {
  const auto backend = make_gpu();
  const flux2_vae::VaeConfig published;
  constexpr int64_t kSide = 1024 / 8;
  const DecodingUse use = decode_randomly(*backend, published, kSide, kSide, DType::bf16);
  RecordProperty("peak_bytes", std::to_string(use.peak));
  RecordProperty("weight_bytes", std::to_string(use.weights));
  RecordProperty("reserved_peak_bytes", std::to_string(use.reserved_peak));
  EXPECT_LE(use.peak,
            flux2_vae::image_bytes(published, kSide, kSide, DType::bf16) + models::kOpsBytes);
  // What the driver gave, with weights and what the pool keeps.
  EXPECT_LE(use.reserved_peak, 3'000'000'000u);
}

// The first bound with which sums are those of whole images, and one that is too small for that.
TEST_F(DecodeMemoryOnGpu, BoundsAreKeptWithTheSamePicture) {
  const auto backend = make_gpu();
  flux2_vae::VaeConfig config;
  constexpr int64_t kSide = 768 / 8;
  const auto strips = flux2_vae::bytes_in_strips(config, kSide, kSide, DType::bf16);
  const auto decode = [&](uint64_t bound) {
    return decode_randomly(*backend, config, kSide, kSide, DType::bf16, bound);
  };
  const DecodingUse whole = decode(0), exact = decode(strips.exact), least = decode(strips.least);
  EXPECT_LT(strips.exact, flux2_vae::image_bytes(config, kSide, kSide, DType::bf16));
  EXPECT_TRUE(exact.image == whole.image);
  EXPECT_LE(exact.peak, strips.exact + models::kOpsBytes);
  EXPECT_LE(least.peak, strips.least + models::kOpsBytes);
  ASSERT_EQ(least.image.size(), whole.image.size());
  double squares = 0, apart = 0;
  for (size_t i = 0; i < whole.image.size(); ++i) {
    squares += double{whole.image[i]} * whole.image[i];
    apart += std::pow(double{whole.image[i]} - least.image[i], 2);
  }
  // Sums in another order, and then BF16's roundings on the way through sixty layers.
  RecordProperty("relative_difference", std::to_string(std::sqrt(apart / squares)));
  EXPECT_LE(std::sqrt(apart / squares), 0x1p-6);
}

}  // namespace
}  // namespace octet::test
