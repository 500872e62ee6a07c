// Every unquantized CPU matmul kernel against ref: ragged shapes, rows apart, all types, values
// that are not finite. A kernel that this CPU lacks is skipped.
#include "cpu/matmul/matmul.h"

#include <memory>
#include <string>
#include <vector>

#include "backend/matmul_run.h"

namespace octet::test::matmul {
namespace {

class CpuMatmul : public testing::TestWithParam<size_t> {
 protected:
  const cpu::MatmulKernel& kernel() const { return cpu::matmul_kernels()[GetParam()]; }

  void SetUp() override {
    if (!kernel().supported(cpu::cpu_features())) {
      GTEST_SKIP() << "because this CPU cannot run " << kernel().name;
    }
  }

  std::vector<DType> inputs() const {
    std::vector<DType> types;
    for (const DType type : {DType::f32, DType::bf16}) {
      if (kernel().serves(type)) types.push_back(type);
    }
    return types;
  }

  Multiply multiply() {
    return [this](Matrix& a, Matrix& b, Matrix& out) {
      cpu::matmul(*pool_, kernel(), a.view, b.view, out.view);
    };
  }

  std::unique_ptr<ThreadPool> pool_ = std::make_unique<ThreadPool>(3);
};

TEST_P(CpuMatmul, RaggedShapes) {
  for (const Dims& dims : ragged_shapes()) {
    for (const DType type : inputs()) {
      expect_right(multiply(), dims, type, DType::f32);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CpuMatmul, EveryOutputType) {
  for (const DType type : inputs()) {
    for (const DType output : {DType::f32, DType::bf16, DType::f16}) {
      expect_right(multiply(), {45, 77, 70}, type, output);
      expect_right(multiply(), {1, 1, 1}, type, output);
    }
  }
}

// Three passes over m with tasks split over m; then, as one thread gets them, several n panels per
// task and several blocks of k.
TEST_P(CpuMatmul, ManyBlocks) {
  for (const DType type : inputs()) expect_right(multiply(), {1030, 20, 33}, type, DType::bf16, 3);
  pool_ = std::make_unique<ThreadPool>(1);
  for (const DType type : inputs())
    expect_right(multiply(), {300, 290, 1000}, type, DType::f32, 23);
}

// The narrow types hold exactly the f32 result, rounded as from_f32 does: the sums are the same.
TEST_P(CpuMatmul, RoundsOnceToNearestEven) {
  for (const DType type : inputs()) {
    std::mt19937 random(11);
    const int64_t m = 37, n = 70, k = 3;
    Matrix a(type, m, k, 0), b(type, n, k, 0);
    // Powers of two from far below the least f16 to far above the greatest, some sums on ties.
    for (int64_t at = 0; at < a.elements(); ++at) {
      const auto mantissa = static_cast<float>(random() % 7) - 3;
      a.set(at, std::ldexp(mantissa, static_cast<int>(random() % 44) - 24));
    }
    for (int64_t at = 0; at < b.elements(); ++at) b.set(at, random() % 2 == 0 ? 1.0f : 0.5f);
    a.set(0, kInf);
    a.set(k, kNan);
    a.set(2 * k, -kNan);
    a.set(3 * k, 65520);  // f32: the tie between the greatest f16 and infinity
    Matrix wide(DType::f32, m, n, 1), bf16(DType::bf16, m, n, 1), f16(DType::f16, m, n, 1);
    multiply()(a, b, wide);
    multiply()(a, b, bf16);
    multiply()(a, b, f16);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const float value = wide.get(i, j);
        ASSERT_EQ(bf16.view.row<bf16_t>(i)[j].bits, from_f32<bf16_t>(value).bits) << value;
        ASSERT_EQ(f16.view.row<f16_t>(i)[j].bits, from_f32<f16_t>(value).bits) << value;
      }
    }
  }
}

TEST_P(CpuMatmul, NanAndInfinityReachTheirRowsAndColumnsOnly) {
  for (const DType type : inputs()) expect_nan_and_infinity_in_place(multiply(), type);
}

TEST_P(CpuMatmul, EmptyDimensions) {
  for (const DType type : inputs()) expect_zeros_without_k(multiply(), type);
}

INSTANTIATE_TEST_SUITE_P(Kernels, CpuMatmul,
                         testing::Range<size_t>(0, cpu::matmul_kernels().size()),
                         [](const auto& kernel) {
                           return std::string(cpu::matmul_kernels()[kernel.param].name);
                         });

// By way of the interface, as other backends' tests do it.
TEST(CpuMatmulBackend, EqualsRef) {
  auto backend = make_cpu_backend({.threads = 2});
  expect_right(multiply_on(*backend), {45, 77, 70}, DType::f32, DType::f32);
  expect_right(multiply_on(*backend), {45, 77, 70}, DType::bf16, DType::bf16);
  expect_nan_and_infinity_in_place(multiply_on(*backend), DType::bf16);
  expect_zeros_without_k(multiply_on(*backend), DType::f32);
}

TEST(CpuMatmulChoice, TakesTheFirstSupportedKernelForTheInputs) {
  const cpu::CpuFeatures none;
  for (const DType type : {DType::f32, DType::bf16}) {
    const cpu::MatmulKernel& best = cpu::choose_matmul_kernel(type, cpu::cpu_features());
    for (const cpu::MatmulKernel& kernel : cpu::matmul_kernels()) {
      if (!kernel.serves(type) || !kernel.supported(cpu::cpu_features())) continue;
      EXPECT_STREQ(best.name, kernel.name);
      break;
    }
    EXPECT_TRUE(cpu::choose_matmul_kernel(type, none).supported(none));
  }
}

}  // namespace
}  // namespace octet::test::matmul
