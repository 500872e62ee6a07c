// quantize_rows and dequantize_rows: the bits of ref on every instruction set, and ref itself
// against the definition of the rotation.
#include "backend/quantize_cases.h"

namespace octet::test {
namespace {

class QuantizeOnEveryKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = why_not(GetParam()); !reason.empty()) {
      GTEST_SKIP() << "skipped, because " << reason;
    }
    backend_ = make_cpu_backend({.threads = 2, .force_kernel = GetParam()});
  }
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Quantize, QuantizeOnEveryKernel, testing::ValuesIn(all_kernel_names()),
                         print_name);

TEST_P(QuantizeOnEveryKernel, EqualsRefForAllTypesAndLengths) {
  compare_with_ref(*backend_, cases_of_all_types_and_lengths());
}

TEST_P(QuantizeOnEveryKernel, SmoothEqualsRef) { compare_with_ref(*backend_, smooth_cases()); }

TEST_P(QuantizeOnEveryKernel, RotateEqualsRef) { compare_with_ref(*backend_, rotate_cases()); }

TEST_P(QuantizeOnEveryKernel, ZeroNanInfinityAndTinyRows) {
  compare_with_ref(*backend_, special_value_cases());
}

TEST_P(QuantizeOnEveryKernel, StepwiseEqualsRef) {
  const int8_t lowest = GetParam().starts_with("avx2") ? -127 : -128;
  compare_stepwise_with_ref(*backend_, cases_of_all_types_and_lengths(), lowest);
  compare_stepwise_with_ref(*backend_, smooth_cases(), lowest);
  compare_stepwise_with_ref(*backend_, rotate_cases(), lowest);
  compare_stepwise_with_ref(*backend_, special_value_cases(), lowest);
}

TEST_P(QuantizeOnEveryKernel, TiesGoToEven) { expect_ties_to_even(*backend_); }

TEST_P(QuantizeOnEveryKernel, DequantizeEqualsRef) { compare_dequantize_with_ref(*backend_); }

// The row's definition, checked on ref: error at most half a step, largest value at +-127.
TEST(QuantizeRef, ErrorIsAtMostHalfAStep) {
  auto ref = make_ref_backend();
  std::mt19937 random(4);
  QuantizeCase input{"", GuardedMatrix(DType::f32, 20, 400)};
  const TensorView x = input.x.view();
  fill_activations(x, random);
  Quantized got(*ref, input);
  for (int64_t i = 0; i < 20; ++i) {
    int largest = 0;
    for (int64_t j = 0; j < 400; ++j) {
      const int q = got.values.view().row<int8_t>(i)[j];
      largest = std::max(largest, std::abs(q));
      const float scale = got.scales[static_cast<size_t>(i)];
      // 1e-5 of a step for the two roundings of the scale and its inverse.
      EXPECT_LE(std::fabs(read_element(x, i, j) - static_cast<float>(q) * scale), 0.50001f * scale);
    }
    EXPECT_EQ(largest, 127);
  }
}

TEST(QuantizeRef, StepwiseIsWhatItStandsFor) {
  auto ref = make_ref_backend();
  for (const DType type : {DType::bf16, DType::f16}) {
    SCOPED_TRACE(name_of(type));
    expect_steps_of_type(*ref, type);
  }
}

// H[i][j] by its definition: product over base-4 digits of -1 where they add up to 3, else +1.
TEST(QuantizeRef, RotationIsTheRegularHadamardMatrix) {
  auto ref = make_ref_backend();
  for (const int64_t group : {4, 16, 64, 256, 1024}) {
    QuantizeCase input{"", GuardedMatrix(DType::f32, 1, group), Transform::rotate, group};
    const TensorView x = input.x.view();
    std::mt19937 random(5);
    fill_activations(x, random);
    Quantized got(*ref, input);
    for (int64_t j = 0; j < group; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < group; ++i) {
        int sign = 1;
        for (int64_t a = i, b = j, g = group; g > 1; a /= 4, b /= 4, g /= 4) {
          if (a % 4 + b % 4 == 3) sign = -sign;
        }
        sum += sign * static_cast<double>(read_element(x, 0, i));
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
