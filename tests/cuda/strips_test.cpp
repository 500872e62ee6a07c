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
      const StripProblem problem(*backend, type, c, kOut, random, /*gap=*/0);
      GuardedMatrix want(type, problem.pixels, kOut), got(type, problem.pixels, kOut);
      Operand of_whole(*backend, want), out(*backend, got);
      const ConvArgs whole = problem.into(of_whole.view());
      const int64_t piece = whole.shape().pixels_at_once();
      ASSERT_LT(piece, problem.pixels);
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
