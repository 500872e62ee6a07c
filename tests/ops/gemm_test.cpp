// The int8 GEMM: every microkernel of this architecture, forced by name, gives the bits of ref.
#include <limits>

#include "support.h"

namespace octet::test {
namespace {

struct Case {
  int64_t m, n, k;
  int64_t a_stride = 0, out_stride = 0;
};

// One GEMM on both backends and everything it needs.
class GemmRun {
 public:
  GemmRun(const Case& shape, uint32_t seed, int lowest_weight = -127)
      : shape_(shape),
        random_(seed),
        a_(DType::i8, shape.m, shape.k, shape.a_stride),
        w_(DType::i8, shape.n, shape.k) {
    fill_int8(a_.view(), random_);
    fill_int8(w_.view(), random_, lowest_weight);
    row_scale_ = random_floats(shape.m, random_, 1e-4f, 2e-2f);
    col_scale_ = random_floats(shape.n, random_, 1e-4f, 1e-3f);
    bias_ = random_floats(shape.n, random_, -3.0f, 3.0f);
  }

  TensorView a() { return a_.view(); }
  TensorView w() { return w_.view(); }
  std::vector<float>& row_scale() { return row_scale_; }

  GuardedMatrix run(Backend& backend, DType out_type, Fusion fusion) {
    const QTensor weight{w_.view(), vector_view(col_scale_)};
    const QWeight packed = backend.pack(weight, vector_view(bias_), {});
    GuardedMatrix out(out_type, shape_.m, shape_.n, shape_.out_stride);
    GemmArgs args;
    args.a = {a_.view(), vector_view(row_scale_)};
    args.w = &packed;
    args.out = out.view();
    backend.gemm(args, fusion);
    return out;
  }

  // Accumulator, and all outputs and fusions, against ref.
  void compare(Backend& backend) {
    const auto ref = make_ref_backend();
    const std::pair<DType, Fusion> variants[] = {
        {DType::i32, Fusion::none},  {DType::f32, Fusion::none},  {DType::f32, Fusion::bias},
        {DType::bf16, Fusion::none}, {DType::bf16, Fusion::bias}, {DType::f16, Fusion::bias},
    };
    for (const auto& [type, fusion] : variants) {
      auto got = run(backend, type, fusion);
      auto want = run(*ref, type, fusion);
      EXPECT_TRUE(same_bits(got.view(), want.view()))
          << "m=" << shape_.m << " n=" << shape_.n << " k=" << shape_.k << " " << name_of(type)
          << " " << name_of(fusion);
      EXPECT_TRUE(got.guards_intact());
    }
  }

 private:
  Case shape_;
  std::mt19937 random_;
  GuardedMatrix a_, w_;
  std::vector<float> row_scale_, col_scale_, bias_;
};

class EveryKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = why_not(GetParam()); !reason.empty()) {
      GTEST_SKIP() << "skipped, because " << reason;
    }
  }
  std::unique_ptr<Backend> backend(int threads) {
    return make_cpu_backend({.threads = threads, .force_kernel = GetParam()});
  }
};

INSTANTIATE_TEST_SUITE_P(Gemm, EveryKernel, testing::ValuesIn(all_kernel_names()), print_name);

TEST_P(EveryKernel, RunsWhenForced) {
  auto forced = backend(1);
  std::vector<std::string> ran;
  forced->set_gemm_observer(
      [&](const GemmProblem&, std::string_view kernel) { ran.emplace_back(kernel); });
  GemmRun run({3, 5, 7}, 1);
  run.run(*forced, DType::f32, Fusion::none);
  EXPECT_EQ(ran, std::vector<std::string>{GetParam()});
}

TEST_P(EveryKernel, EqualsRefOnTinyShapes) {
  auto forced = backend(1);
  for (int64_t m : {1, 2, 3}) {
    for (int64_t n : {1, 2, 5}) {
      for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65}) {
        GemmRun({m, n, k}, static_cast<uint32_t>(m * 1000 + n * 100 + k)).compare(*forced);
      }
    }
  }
}

TEST_P(EveryKernel, EqualsRefOnRaggedShapes) {
  const Case cases[] = {
      {1, 100, 300},
      {7, 47, 129},
      {8, 48, 128},
      {9, 49, 127},
      {31, 33, 191},
      {32, 32, 192},
      {33, 31, 193},
      {64, 96, 256},
      {65, 97, 255},
      {100, 1, 77},
      {1, 1, 1000},
      {17, 130, 577},
      {40, 50, 0},
      {13, 29, 61, 80, 64},      // rows apart on both sides
      {50, 70, 1200, 1203, 71},  // more than one k block
      {37, 300, 2500, 2501, 301},
  };
  auto one = backend(1);
  auto three = backend(3);
  for (const Case& shape : cases) {
    GemmRun(shape, 7).compare(*one);
    GemmRun(shape, 8).compare(*three);
  }
}

TEST_P(EveryKernel, ManyTasksAndBlocks) { GemmRun({530, 270, 70}, 11).compare(*backend(2)); }

// Sums of equal signs at the ends of the range: saturating instructions would show here.
TEST_P(EveryKernel, ExtremeValuesDoNotSaturate) {
  auto forced = backend(1);
  for (const auto& [a_value, w_value] :
       {std::pair{127, 127}, {127, -128}, {-127, 127}, {-127, -128}, {-127, -127}}) {
    GemmRun run({5, 50, 200}, 3);
    for (int64_t i = 0; i < 5; ++i) std::fill_n(run.a().row<int8_t>(i), 200, int8_t(a_value));
    for (int64_t j = 0; j < 50; ++j) std::fill_n(run.w().row<int8_t>(j), 200, int8_t(w_value));
    auto got = run.run(*forced, DType::i32, Fusion::none);
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 50; ++j) {
        ASSERT_EQ(got.view().row<int32_t>(i)[j], 200 * a_value * w_value);
      }
    }
  }
}

TEST_P(EveryKernel, LargestKKeepsTheSumInInt32) {
  GemmRun run({1, 2, kMaxK}, 5);
  std::fill_n(run.a().row<int8_t>(0), kMaxK, int8_t{127});
  std::fill_n(run.w().row<int8_t>(0), kMaxK, int8_t{-128});
  std::fill_n(run.w().row<int8_t>(1), kMaxK, int8_t{127});
  auto got = run.run(*backend(1), DType::i32, Fusion::none);
  EXPECT_EQ(got.view().row<int32_t>(0)[0], -127 * 128 * kMaxK);
  EXPECT_EQ(got.view().row<int32_t>(0)[1], 127 * 127 * kMaxK);
}

TEST_P(EveryKernel, WeightsOfOtherToolsMayHoldMinus128) {
  GemmRun({20, 60, 333}, 13, -128).compare(*backend(2));
}

TEST_P(EveryKernel, NanInfinityAndZeroScalesReachTheOutput) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  GemmRun run({6, 40, 90}, 17);
  run.row_scale() = {nan, infinity, 0.0f, 1e-38f, -infinity, 3e38f};
  run.compare(*backend(1));
}

TEST_P(EveryKernel, EmptyProblemsWriteNothing) {
  GemmRun({0, 5, 7}, 1).compare(*backend(2));
  GemmRun({5, 0, 7}, 1).compare(*backend(2));
}

TEST(GemmChecks, UnknownForcedKernelNamesTheKnownOnes) {
  try {
    make_cpu_backend({.force_kernel = "amx_int7"});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("scalar_4x16"), std::string::npos) << error.what();
  }
}

std::string gemm_error(Backend& backend, const GemmArgs& args, Fusion fusion = Fusion::none) {
  try {
    backend.gemm(args, fusion);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GemmChecks, WrongArgumentsAreNamedWithTheirValues) {
  auto backend = make_cpu_backend({.threads = 1});
  GuardedMatrix a(DType::i8, 4, 8), w(DType::i8, 6, 8), out(DType::f32, 4, 6);
  std::mt19937 random(1);
  fill_int8(a.view(), random);
  fill_int8(w.view(), random);
  std::vector<float> row_scale(4, 1.0f), col_scale(6, 1.0f);
  const QWeight packed = backend->pack({w.view(), vector_view(col_scale)}, {}, {});
  const GemmArgs good{{a.view(), vector_view(row_scale)}, &packed, out.view()};
  EXPECT_EQ(gemm_error(*backend, good), "");

  GemmArgs bad = good;
  bad.w = nullptr;
  EXPECT_NE(gemm_error(*backend, bad).find("weight is missing"), std::string::npos);
  bad = good;
  bad.out.shape = {4, 7};
  EXPECT_EQ(gemm_error(*backend, bad),
            "gemm: out has rows 6 elements apart, fewer than its 7 "
            "columns");
  bad = good;
  bad.out.shape = {4, 5};
  EXPECT_EQ(gemm_error(*backend, bad), "gemm: out is [4, 5], expected [4, 6]");
  bad = good;
  bad.a.values.shape = {4, 7};
  EXPECT_EQ(gemm_error(*backend, bad), "gemm: a has k=7, but the weight was packed with k=8");
  bad = good;
  bad.out.dtype = DType::i8;
  EXPECT_EQ(gemm_error(*backend, bad), "gemm: out is I8, expected F32 or BF16 or F16 or I32");
  EXPECT_NE(gemm_error(*backend, good, Fusion::bias).find("bias"), std::string::npos);

  const QWeight foreign = make_ref_backend()->pack({w.view(), vector_view(col_scale)}, {}, {});
  bad = good;
  bad.w = &foreign;
  EXPECT_NE(gemm_error(*backend, bad).find("ref_rows"), std::string::npos);
}

TEST(GemmChecks, TooLargeKIsRefused) {
  auto backend = make_cpu_backend({.threads = 1});
  GuardedMatrix w(DType::i8, 1, kMaxK + 1);
  std::vector<float> col_scale(1, 1.0f);
  EXPECT_THROW(backend->pack({w.view(), vector_view(col_scale)}, {}, {}), Error);
}

}  // namespace
}  // namespace octet::test
