// What diffusers and transformers computed, recorded, on the GPU.
#include "cuda/cuda_support.h"
#include "models/golden_run.h"

namespace octet::test {
namespace {

class GoldenOnGpu : public OnGpu {};

TEST_F(GoldenOnGpu, TextFeatures) { expect_golden_text(*make_gpu(), DType::f32); }
TEST_F(GoldenOnGpu, TextFeaturesInBf16) { expect_golden_text(*make_gpu(), DType::bf16); }
TEST_F(GoldenOnGpu, Velocities) { expect_golden_velocities(*make_gpu(), DType::f32); }
TEST_F(GoldenOnGpu, VelocitiesInBf16) { expect_golden_velocities(*make_gpu(), DType::bf16); }
TEST_F(GoldenOnGpu, VelocitiesOfInt8Linears) { expect_golden_int8(*make_gpu()); }
TEST_F(GoldenOnGpu, DecodedImage) { expect_golden_decoding(*make_gpu(), DType::f32); }
TEST_F(GoldenOnGpu, DecodedImageInBf16) { expect_golden_decoding(*make_gpu(), DType::bf16); }
TEST_F(GoldenOnGpu, ImageFromCaptionAndNoise) { expect_golden_image(make_gpu()); }

}  // namespace
}  // namespace octet::test
