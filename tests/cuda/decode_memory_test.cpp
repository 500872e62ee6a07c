// A GPU's memory while the published VAE decodes: the images that the plan counts, and what single
// ops take for themselves.
#include "models/decode_memory.h"

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
  EXPECT_LE(use.peak, flux2_vae::image_bytes(published, kSide, kSide, DType::bf16) +
                          models::kOpsBytes);
  // What the driver gave, with weights and what the pool keeps.
  EXPECT_LE(use.reserved_peak, 3'000'000'000u);
}

}  // namespace
}  // namespace octet::test
