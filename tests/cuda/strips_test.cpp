// Convolutions in strips of whole pieces, which a GPU multiplies as it does those of the image.
#include "backend/strip_run.h"
#include "cuda/cuda_support.h"

namespace octet::test::model {
namespace {

class StripsOnGpu : public OnGpu {};

TEST_F(StripsOnGpu, OfWholePiecesHaveTheBitsOfTheImage) {
  const auto backend = make_gpu();
  std::mt19937 random(51);
  constexpr int64_t kOut = 104;
  for (const DType type : kTypes) {
    for (const StripCase& c : {StripCase{600, 700, 64, 1}, StripCase{503, 401, 64, 3},
                               StripCase{502, 402, 64, 3, true}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}, kernel {}", name_of(type), c.height, c.width, c.kernel));
      const int64_t pixels = c.height * c.width, k = c.kernel * c.kernel * c.channels;
      GuardedMatrix x =
          random_matrix(type, c.doubled ? pixels / 4 : pixels, c.channels, random, 1, 0, 0);
      GuardedMatrix weight = random_matrix(type, kOut, k, random, 0.3f, 0, 0);
      GuardedMatrix bias = random_vector(type, kOut, random);
      const Operand device_x(*backend, x), device_weight(*backend, weight),
          device_bias(*backend, bias);
      GuardedMatrix want(type, pixels, kOut), got(type, pixels, kOut);
      Operand of_whole(*backend, want), out(*backend, got);
      const ConvArgs whole{.x = device_x.view(),
                           .weight = device_weight.view(),
                           .bias = device_bias.vector(),
                           .out = of_whole.view(),
                           .height = c.height,
                           .width = c.width,
                           .kernel = c.kernel,
                           .doubled = c.doubled};
      const int64_t piece = whole.shape().pixels_at_once();
      ASSERT_LT(piece, pixels);
      backend->conv2d(whole);
      of_whole.download();
      convolve_in_strips(*backend, whole, out.view(), piece);
      out.download();
      EXPECT_TRUE(same_bits(got.view(), want.view()));
    }
  }
}

}  // namespace
}  // namespace octet::test::model
