// quantize_rows_searched: the bits of ref on every instruction set, and ref itself against squared
// errors in double.
#include "backend/search_cases.h"

namespace octet::test {
namespace {

class SearchOnEveryKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = why_not(GetParam()); !reason.empty()) {
      GTEST_SKIP() << "skipped, because " << reason;
    }
    backend_ = make_cpu_backend({.threads = 2, .force_kernel = GetParam()});
  }
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Search, SearchOnEveryKernel, testing::ValuesIn(all_kernel_names()),
                         print_name);

TEST_P(SearchOnEveryKernel, EqualsRef) {
  for (auto& cases : all_search_cases(ratios_down_from_one(9))) {
    compare_with_ref(*backend_, std::move(cases));
  }
}

TEST_P(SearchOnEveryKernel, MostAndSmallestRatiosEqualRef) {
  std::vector<float> ratios = ratios_down_from_one(kMaxClipRatios - 1);
  ratios.push_back(kMinClipRatio);
  std::mt19937 random(7);
  std::vector<QuantizeCase> cases;
  cases.push_back({"outliers", bulk_and_outlier(DType::f32, 12, 5003, random)});
  cases.back().ratios = ratios;
  compare_with_ref(*backend_, std::move(cases));
}

TEST_P(SearchOnEveryKernel, OneRatioIsNoSearch) { expect_one_ratio_is_no_search(*backend_); }

TEST_P(SearchOnEveryKernel, TheSmallerErrorWins) { expect_the_smaller_error_wins(*backend_); }

TEST(SearchRef, OneRatioIsNoSearch) { expect_one_ratio_is_no_search(*make_ref_backend()); }

TEST(SearchRef, TheSmallerErrorWins) { expect_the_smaller_error_wins(*make_ref_backend()); }

// The distance of a row from its codes with a scale, in double.
double distance(const ConstTensorView& x, int64_t row, double scale) {
  double sum = 0;
  for (int64_t j = 0; j < x.shape[1]; ++j) {
    const auto value = static_cast<double>(read_element(x, row, j));
    const double code = std::clamp(std::nearbyint(value / scale), -127.0, 127.0);
    sum += (value - code * scale) * (value - code * scale);
  }
  return std::sqrt(sum);
}

TEST(SearchRef, NoOtherRatioIsBetter) {
  auto ref = make_ref_backend();
  std::mt19937 random(6);
  QuantizeCase input{"", bulk_and_outlier(DType::f32, 30, 20'000, random)};
  input.ratios = ratios_down_from_one(10);
  const TensorView x = input.x.view();
  Quantized got(*ref, input);
  int64_t clipped = 0;
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    double amax = 0;
    for (int64_t j = 0; j < x.shape[1]; ++j) {
      amax = std::max(amax, std::fabs(static_cast<double>(read_element(x, i, j))));
    }
    const double chosen = got.scales[static_cast<size_t>(i)];
    const double reached = distance(x, i, chosen);
    clipped += chosen < 0.99 * amax / 127 ? 1 : 0;
    for (const float ratio : input.ratios) {
      const double scale = amax * static_cast<double>(ratio) / 127;
      // Each residual was rounded to 1/256 of its step: both distances are off by as much as a
      // vector of halves of that is long.
      const double rounding = std::sqrt(static_cast<double>(x.shape[1])) / 512 * (scale + chosen);
      EXPECT_LE(reached, distance(x, i, scale) + rounding) << "row " << i << " ratio " << ratio;
    }
  }
  EXPECT_GT(clipped, 0);
  EXPECT_LT(clipped, x.shape[0]);
}

TEST(SearchChecks, WrongArgumentsAreNamedWithTheirValues) {
  auto backend = make_cpu_backend({.threads = 1});
  GuardedMatrix x(DType::f32, 2, 12), q(DType::i8, 2, 12);
  std::vector<float> scales(2);
  const QTensor out{q.view(), vector_view(scales)};
  const auto message = [&](const std::vector<float>& ratios, const ConstTensorView& input,
                           const ActivationTransform& transform = {}) {
    try {
      backend->quantize_rows_searched(input, transform, ratios, out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto of_ratios = [&](const std::vector<float>& ratios) {
    return message(ratios, x.view());
  };
  const std::string op = "quantize_rows_searched: ";
  EXPECT_EQ(of_ratios({1.0f, 0.0625f}), "");
  EXPECT_EQ(of_ratios({}), op + "0 ratios, expected 1 to 32");
  EXPECT_EQ(of_ratios(std::vector<float>(33, 1.0f)), op + "33 ratios, expected 1 to 32");
  EXPECT_EQ(of_ratios({0.5f, 1.0f}), op + "the first ratio is 0.5, expected 1");
  const std::string range = ", expected all from 0.0625 to 1";
  EXPECT_EQ(of_ratios({1.0f, 0.0624f}), op + "a ratio is 0.0624" + range);
  EXPECT_EQ(of_ratios({1.0f, 0.9f, 1.5f}), op + "a ratio is 1.5" + range);
  EXPECT_EQ(of_ratios({1.0f, -0.5f}), op + "a ratio is -0.5" + range);
  EXPECT_EQ(of_ratios({1.0f, kNan}), op + "a ratio is nan" + range);
  EXPECT_EQ(of_ratios({kNan}), op + "the first ratio is nan, expected 1");

  EXPECT_EQ(message({1.0f}, x.view(), {.kind = Transform::rotate, .group = 8}),
            op + "a rotation group of 8 is not one of 4, 16, 64, 256, 1024");
  GuardedMatrix wrong_type(DType::i8, 2, 12), wrong_shape(DType::f32, 2, 11);
  EXPECT_EQ(message({1.0f}, wrong_type.view()), op + "x is I8, expected F32 or BF16 or F16");
  EXPECT_EQ(message({1.0f}, wrong_shape.view()),
            op + "out is [2, 12], expected the shape [2, 11] of x");
}

TEST(SearchChecks, RowsLongerThanAnyWeightAreRefused) {
  auto backend = make_cpu_backend({.threads = 1});
  GuardedMatrix x(DType::bf16, 1, kMaxK + 1), q(DType::i8, 1, kMaxK + 1);
  std::vector<float> scales(1);
  const std::vector<float> ratios{1.0f};
  EXPECT_THROW(
      backend->quantize_rows_searched(x.view(), {}, ratios, {q.view(), vector_view(scales)}),
      Error);
}

}  // namespace
}  // namespace octet::test
