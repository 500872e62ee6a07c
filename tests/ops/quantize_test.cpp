// quantize_rows and dequantize_rows: the bits of ref on every instruction set, and ref itself
// against the definition of the rotation.
#include <limits>

#include "support.h"

namespace octet::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Quantized {
  GuardedMatrix values;
  std::vector<float> scales;

  Quantized(Backend& backend, const ConstTensorView& x, const ActivationTransform& transform,
            int64_t stride = 0)
      : values(DType::i8, x.shape[0], x.shape[1], stride),
        scales(static_cast<size_t>(x.shape[0]), -1.0f) {
    backend.quantize_rows(x, transform, q());
  }
  QTensor q() { return {values.view(), vector_view(scales)}; }
};

void expect_same(Quantized& got, Quantized& want, const std::string& what) {
  EXPECT_TRUE(same_bits(got.values.view(), want.values.view())) << what;
  EXPECT_TRUE(got.values.guards_intact()) << what;
  for (size_t i = 0; i < want.scales.size(); ++i) {
    if (std::isnan(want.scales[i]) && std::isnan(got.scales[i])) continue;
    EXPECT_EQ(got.scales[i], want.scales[i]) << what << " row " << i;
  }
}

class QuantizeOnEveryKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = why_not(GetParam()); !reason.empty()) {
      GTEST_SKIP() << "skipped, because " << reason;
    }
    backend_ = make_cpu_backend({.threads = 2, .force_kernel = GetParam()});
    ref_ = make_ref_backend();
  }
  void compare(const ConstTensorView& x, const ActivationTransform& transform,
               const std::string& what) {
    Quantized got(*backend_, x, transform, x.shape[1] + 3);
    Quantized want(*ref_, x, transform, x.shape[1] + 3);
    expect_same(got, want, what);
  }
  std::unique_ptr<Backend> backend_, ref_;
  std::mt19937 random_{99};
};

INSTANTIATE_TEST_SUITE_P(Quantize, QuantizeOnEveryKernel, testing::ValuesIn(all_kernel_names()),
                         print_name);

TEST_P(QuantizeOnEveryKernel, EqualsRefForAllTypesAndLengths) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t k : {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 100, 255, 1000}) {
      GuardedMatrix x(type, 9, k, k + 5);
      fill_activations(x.view(), random_);
      compare(x.view(), {}, fmt::format("{} k={}", name_of(type), k));
    }
  }
}

TEST_P(QuantizeOnEveryKernel, SmoothEqualsRef) {
  for (const int64_t k : {1, 7, 64, 333}) {
    GuardedMatrix x(DType::bf16, 5, k);
    fill_activations(x.view(), random_);
    auto smooth = random_floats(k, random_, 0.1f, 4.0f);
    compare(x.view(), {.kind = Transform::smooth, .smooth = vector_view(smooth)}, "smooth");
  }
}

TEST_P(QuantizeOnEveryKernel, RotateEqualsRef) {
  for (const int64_t group : {4, 16, 64, 256, 1024}) {
    for (const int64_t groups : {1, 2, 3, 5}) {
      GuardedMatrix x(DType::bf16, 3, group * groups);
      fill_activations(x.view(), random_);
      compare(x.view(), {.kind = Transform::rotate, .group = group},
              fmt::format("group {} x {}", group, groups));
    }
  }
}

TEST_P(QuantizeOnEveryKernel, ZeroNanInfinityAndTinyRows) {
  const float specials[] = {0.0f,   -0.0f,  kNan,   kInfinity, -kInfinity, 1e-45f,
                            1e-40f, 3e-38f, 1e-37f, 3.8e-37f,  3.4e38f,    65504.0f};
  const auto rows = static_cast<int64_t>(std::size(specials));
  for (const int64_t k : {1, 16, 53}) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      GuardedMatrix x(type, 2 * rows, k);
      for (int64_t i = 0; i < 2 * rows; ++i) {
        for (int64_t j = 0; j < k; ++j) {
          // Upper half: the special value once, among zeros; lower half: everywhere.
          const bool here = i >= rows || j == k / 2;
          write_element(x.view(), i, j, here ? specials[i % rows] : 0.0f);
        }
      }
      compare(x.view(), {}, "special values");
    }
  }
}

// Halves of the quantization step: ties must go to the even integer.
TEST_P(QuantizeOnEveryKernel, TiesGoToEven) {
  GuardedMatrix x(DType::f32, 1, 255);
  for (int64_t j = 0; j < 255; ++j) write_element(x.view(), 0, j, static_cast<float>(j) * 0.5f);
  write_element(x.view(), 0, 254, 127.0f);
  Quantized got(*backend_, x.view(), {});
  EXPECT_EQ(got.scales[0], 1.0f);
  for (int64_t j = 0; j < 254; ++j) {
    EXPECT_EQ(got.values.view().row<int8_t>(0)[j], std::nearbyint(static_cast<double>(j) * 0.5));
  }
}

TEST_P(QuantizeOnEveryKernel, DequantizeEqualsRef) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    GuardedMatrix q(DType::i8, 6, 77, 80);
    fill_int8(q.view(), random_, -128);
    auto scales = random_floats(6, random_, 1e-6f, 1e3f);
    scales[2] = 0.0f;
    scales[3] = kNan;
    GuardedMatrix got(type, 6, 77, 79), want(type, 6, 77, 79);
    backend_->dequantize_rows({q.view(), vector_view(scales)}, got.view());
    ref_->dequantize_rows({q.view(), vector_view(scales)}, want.view());
    EXPECT_TRUE(same_bits(got.view(), want.view()));
    EXPECT_TRUE(got.guards_intact());
  }
}

// The row's definition, checked on ref: error at most half a step, largest value at +-127.
TEST(QuantizeRef, ErrorIsAtMostHalfAStep) {
  auto ref = make_ref_backend();
  std::mt19937 random(4);
  GuardedMatrix x(DType::f32, 20, 400);
  fill_activations(x.view(), random);
  Quantized got(*ref, x.view(), {});
  for (int64_t i = 0; i < 20; ++i) {
    int largest = 0;
    for (int64_t j = 0; j < 400; ++j) {
      const int q = got.values.view().row<int8_t>(i)[j];
      largest = std::max(largest, std::abs(q));
      const float scale = got.scales[static_cast<size_t>(i)];
      // 1e-5 of a step for the two roundings of the scale and its inverse.
      EXPECT_LE(std::fabs(read_element(x.view(), i, j) - static_cast<float>(q) * scale),
                0.50001f * scale);
    }
    EXPECT_EQ(largest, 127);
  }
}

// H[i][j] by its definition: product over base-4 digits of -1 where they add up to 3, else +1.
TEST(QuantizeRef, RotationIsTheRegularHadamardMatrix) {
  auto ref = make_ref_backend();
  for (const int64_t group : {4, 16, 64, 256, 1024}) {
    GuardedMatrix x(DType::f32, 1, group);
    std::mt19937 random(5);
    fill_activations(x.view(), random);
    Quantized got(*ref, x.view(), {.kind = Transform::rotate, .group = group});
    for (int64_t j = 0; j < group; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < group; ++i) {
        int sign = 1;
        for (int64_t a = i, b = j, g = group; g > 1; a /= 4, b /= 4, g /= 4) {
          if (a % 4 + b % 4 == 3) sign = -sign;
        }
        sum += sign * static_cast<double>(read_element(x.view(), 0, i));
      }
      sum /= std::sqrt(static_cast<double>(group));
      const double scale = got.scales[0];
      EXPECT_NEAR(got.values.view().row<int8_t>(0)[j] * scale, sum, 0.5001 * scale);
    }
  }
}

TEST(QuantizeChecks, WrongArgumentsAreNamedWithTheirValues) {
  auto backend = make_cpu_backend({.threads = 1});
  GuardedMatrix x(DType::f32, 2, 12), q(DType::i8, 2, 12);
  std::vector<float> scales(2), smooth(11);
  const QTensor out{q.view(), vector_view(scales)};
  const auto message = [&](const ConstTensorView& input, const ActivationTransform& transform) {
    try {
      backend->quantize_rows(input, transform, out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(x.view(), {.kind = Transform::rotate, .group = 8}),
            "quantize_rows: a rotation group of 8 is not one of 4, 16, 64, 256, 1024");
  EXPECT_EQ(message(x.view(), {.kind = Transform::rotate, .group = 16}),
            "quantize_rows: k=12 is not a multiple of the rotation group 16");
  EXPECT_EQ(message(x.view(), {.kind = Transform::smooth, .smooth = vector_view(smooth)}),
            "quantize_rows: smooth is F32 [11], expected a dense F32 [12]");
  GuardedMatrix wrong(DType::i8, 2, 12);
  EXPECT_EQ(message(wrong.view(), {}), "quantize_rows: x is I8, expected F32 or BF16 or F16");
}

}  // namespace
}  // namespace octet::test
