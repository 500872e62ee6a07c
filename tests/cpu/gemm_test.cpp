// The int8 GEMM: every microkernel of this architecture, forced by name, gives the bits of ref.
#include <limits>

#include "backend/gemm_run.h"
#include "backend/gemm_tuning.h"
#include "backend/kernel_watch.h"

namespace octet::test {
namespace {

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
  const KernelWatch watch(*forced);
  GemmRun run({3, 5, 7}, 1);
  run.run(*forced, DType::f32, Fusion::none);
  EXPECT_EQ(watch.kernel(), GetParam());
  EXPECT_EQ(watch.gemms(), 1);
}

TEST_P(EveryKernel, EqualsRefOnTinyShapes) {
  auto forced = backend(1);
  for (int64_t m : {1, 2, 3}) {
    for (int64_t n : {1, 2, 5, 6}) {
      for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65}) {
        GemmRun({m, n, k}, static_cast<uint32_t>(m * 1000 + n * 100 + k)).compare(*forced);
      }
    }
  }
}

// A weight of somebody else, which is packed for the call.
TEST_P(EveryKernel, BorrowedWeightsEqualRef) {
  auto forced = backend(2);
  GemmRun({5, 34, 67}, 2).borrowing().compare(*forced);
  GemmRun({9, 32, 64, 0, 0, 80}, 3).borrowing().compare(*forced);
}

TEST_P(EveryKernel, EqualsRefOnRaggedShapes) {
  const GemmShape cases[] = {
      {1, 100, 300},
      {7, 47, 129},
      {7, 46, 129},
      {8, 48, 128},
      {9, 49, 127},
      {9, 50, 127},
      {31, 33, 191},
      {32, 32, 192},
      {33, 31, 193},
      {33, 34, 193},
      {64, 96, 256},
      {65, 97, 255},
      {65, 94, 255},
      {100, 1, 77},
      {100, 2, 77},
      {1, 1, 1000},
      {17, 130, 577},
      {40, 50, 0},
      {13, 29, 61, 80, 64},  // rows apart on both sides
      {13, 30, 61, 80, 64},
      {50, 70, 1200, 1203, 71},  // more than one k block
      {37, 300, 2500, 2501, 301},
  };
  auto one = backend(1);
  auto three = backend(3);
  for (const GemmShape& shape : cases) {
    GemmRun run(shape, 7);
    run.compare(*one);
    run.compare(*three);
  }
}

TEST_P(EveryKernel, ManyTasksAndBlocks) { GemmRun({530, 270, 70}, 11).compare(*backend(2)); }

// Products of equal signs at the ends of the range: saturating instructions would show here.
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

TEST_P(EveryKernel, SwigluOfAllGates) { run_of_all_gates().compare(*backend(2)); }

// Rows whose gates reach from where silu is linear to far beyond where it has vanished.
TEST_P(EveryKernel, SwigluOfSmallAndLargeRows) {
  GemmRun run({30, 98, 64}, 19);
  for (size_t i = 0; i < 30; ++i) run.row_scale()[i] = std::ldexp(1.0f, static_cast<int>(i) - 15);
  run.compare(*backend(1));
}

TEST_P(EveryKernel, IsItsBackendsPlanForEverything) {
  const GemmPlan plan = backend(1)->tuning().plan_gemm({.m = 3, .n = 5, .k = 7});
  EXPECT_EQ(plan.kernel, GetParam());
  EXPECT_EQ(plan.source, GemmPlan::Source::only);
  EXPECT_EQ(plan.us, 0);
  EXPECT_TRUE(backend(1)->tuning().gemm_peers().empty());
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

// A gated weight and a plain one, of the same six rows.
struct GatedArguments {
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  GuardedMatrix a{DType::i8, 4, 8}, w{DType::i8, 6, 8}, out{DType::f32, 4, 3};
  std::vector<float> row_scale = std::vector<float>(4, 1.0f), col_scale{1, 2, 3, 4, 5, 6};
  QWeight gated, plain;
  GemmArgs good;

  GatedArguments() {
    std::mt19937 random(1);
    fill_int8(a.view(), random);
    fill_int8(w.view(), random);
    gated = pack(6, {}, RowOrder::gate_up);
    plain = pack(6, {}, RowOrder::plain);
    good = {{a.view(), vector_view(row_scale)}, &gated, out.view()};
  }
  QWeight pack(int64_t n, const ConstTensorView& bias, RowOrder order) {
    QTensor weight{w.view(), vector_view(col_scale)};
    weight.values.shape[0] = n;
    weight.scales.shape[0] = n;
    return backend->pack(weight, bias, {}, order);
  }
  std::string pack_error(int64_t n, const ConstTensorView& bias) {
    try {
      pack(n, bias, RowOrder::gate_up);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST(GemmChecks, SwigluAndItsWeightBelongTogether) {
  GatedArguments arguments;
  Backend& backend = *arguments.backend;
  EXPECT_TRUE(arguments.gated.gated);
  EXPECT_FALSE(arguments.plain.gated);
  EXPECT_EQ(gemm_error(backend, arguments.good, Fusion::swiglu), "");

  GemmArgs bad = arguments.good;
  bad.w = &arguments.plain;
  EXPECT_EQ(gemm_error(backend, bad, Fusion::swiglu),
            "gemm: the fusion swiglu needs a weight of gate and up rows, got a plain one; pack it "
            "with RowOrder::gate_up");
  GuardedMatrix wide(DType::f32, 4, 6), acc(DType::i32, 4, 3);
  bad = arguments.good;
  bad.out = wide.view();
  for (const auto fusion : {Fusion::none, Fusion::bias}) {
    EXPECT_EQ(gemm_error(backend, bad, fusion),
              fmt::format("gemm: a weight of gate and up rows takes a gated fusion such as swiglu, "
                          "got {}; pack it with RowOrder::plain",
                          name_of(fusion)));
  }
  EXPECT_EQ(gemm_error(backend, bad, Fusion::swiglu), "gemm: out is [4, 6], expected [4, 3]");
  bad.out = acc.view();
  EXPECT_EQ(gemm_error(backend, bad, Fusion::swiglu),
            "gemm: an I32 output is the bare accumulator and takes no fusion, got swiglu");
  arguments.gated.n = 5;
  EXPECT_EQ(gemm_error(backend, arguments.good, Fusion::swiglu),
            "gemm: a weight of gate and up rows has n=5, expected an even n; pack() makes one");
}

TEST(GemmChecks, AGateUpWeightHasAnEvenNAndNoBias) {
  GatedArguments arguments;
  std::vector<float> bias(6, 1.0f);
  EXPECT_EQ(arguments.pack_error(5, {}),
            "pack: a gate_up weight has n=5, expected an even n: the gate's rows, then as many of "
            "the up projection");
  EXPECT_EQ(arguments.pack_error(6, vector_view(bias)),
            "pack: a gate_up weight takes no bias, got F32 [6]; leave it out");
}

// By hand, since ref and cpu share the rows' new order: gates are the first half of the rows.
TEST(GemmRef, SwigluMultipliesTheFirstHalfsSiluByTheSecondHalf) {
  auto ref = make_ref_backend();
  GuardedMatrix a(DType::i8, 1, 1), w(DType::i8, 4, 1, 3), out(DType::f32, 1, 2);
  write_element(a.view(), 0, 0, 1.0f);
  for (int64_t j = 0; j < 4; ++j) write_element(w.view(), j, 0, static_cast<float>(j + 1));
  std::vector<float> row_scale{1.0f}, col_scale{1.0f, 1.0f, 10.0f, 100.0f};
  const QWeight packed = ref->pack({w.view(), vector_view(col_scale)}, {}, {}, RowOrder::gate_up);
  ref->gemm({{a.view(), vector_view(row_scale)}, &packed, out.view()}, Fusion::swiglu);
  EXPECT_NEAR(read_element(out.view(), 0, 0), 1.0 / (1.0 + std::exp(-1.0)) * 30.0, 1e-4);
  EXPECT_NEAR(read_element(out.view(), 0, 1), 2.0 / (1.0 + std::exp(-2.0)) * 400.0, 1e-3);
  EXPECT_EQ(ref->tuning().plan_gemm({}).kernel, "ref");
}

TEST(GemmChecks, TooLargeKIsRefused) {
  auto backend = make_cpu_backend({.threads = 1});
  GuardedMatrix w(DType::i8, 1, kMaxK + 1);
  std::vector<float> col_scale(1, 1.0f);
  EXPECT_THROW(backend->pack({w.view(), vector_view(col_scale)}, {}, {}), Error);
}

}  // namespace
}  // namespace octet::test
