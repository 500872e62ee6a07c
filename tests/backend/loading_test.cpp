// What a loader asks of a backend: the checks of every backend, and their arguments.
#include "backend/loading_run.h"

namespace octet::test::model {
namespace {

class Loading : public testing::TestWithParam<size_t> {};

TEST_P(Loading, OnRef) { kLoadingChecks[GetParam()].run(*make_ref_backend()); }

TEST_P(Loading, OnEveryCpuKernel) {
  const LoadingCheck& check = kLoadingChecks[GetParam()];
  if (!check.by_kernel) return check.run(*make_cpu_backend({.threads = 2}));
  for (const std::string& kernel : all_kernel_names()) {
    if (!why_not(kernel).empty()) continue;
    SCOPED_TRACE(kernel);
    check.run(*make_cpu_backend({.threads = 2, .force_kernel = kernel}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Loading, testing::Range<size_t>(0, std::size(kLoadingChecks)),
                         [](const auto& test) { return kLoadingChecks[test.param].name; });

// By hand: a value of each kind that E4M3 has, scaled and rounded.
TEST(LoadingRef, ConvertsFp8ByItsDefinition) {
  GuardedMatrix x(DType::f8_e4m3, 2, 6), out(DType::bf16, 2, 6), wide(DType::f32, 2, 6);
  // 1, -0, the smallest subnormal, the largest number, NaN, -1.125
  const uint8_t codes[] = {0x38, 0x80, 0x01, 0x7e, 0xff, 0xb9};
  const float values[] = {1.0f, -0.0f, 0x1p-9f, 448.0f, kNaN, -1.125f};
  std::vector<float> scales = {1.0f, 0.3f};
  for (int64_t i = 0; i < 2; ++i) std::memcpy(x.view().row<uint8_t>(i), codes, 6);
  const auto ref = make_ref_backend();
  ref->convert(x.view(), out.view(), vector_view(scales));
  ref->convert(x.view(), wide.view());
  for (int64_t j = 0; j < 6; ++j) {
    const float value = values[j];
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(read_element(wide.view(), 0, j)));
      EXPECT_EQ(out.view().row<bf16_t>(1)[j].bits, 0x7fc0);
      continue;
    }
    EXPECT_EQ(read_element(wide.view(), 0, j), value);
    EXPECT_EQ(std::signbit(read_element(wide.view(), 0, j)), std::signbit(value));
    EXPECT_EQ(read_element(out.view(), 1, j), to_f32(from_f32<bf16_t>(value * 0.3f)));
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LoadingChecks, ConvertNamesWhatDoesNotFit) {
  const auto backend = make_cpu_backend({.threads = 1});
  GuardedMatrix x(DType::f8_e4m3, 2, 4), other(DType::f8_e5m2, 2, 4), out(DType::bf16, 2, 4),
      narrow(DType::f16, 2, 4), small(DType::bf16, 2, 3);
  std::vector<float> scales(3, 1.0f);
  EXPECT_EQ(error_of([&] { backend->convert(other.view(), out.view()); }),
            "convert: x is F8_E5M2, expected F8_E4M3 or F16 or BF16 or F32");
  EXPECT_EQ(error_of([&] { backend->convert(x.view(), narrow.view()); }),
            "convert: out is F16, expected F32 or BF16");
  EXPECT_EQ(error_of([&] { backend->convert(x.view(), small.view()); }),
            "convert: out is [2, 3], expected the shape [2, 4] of x");
  EXPECT_EQ(error_of([&] { backend->convert(x.view(), out.view(), vector_view(scales)); }),
            "convert: row_scale is F32 [3], expected a dense F32 [2]");
}

TEST(LoadingChecks, PackRowsNamesWhatDoesNotFit) {
  const auto backend = make_cpu_backend({.threads = 1});
  QWeight weight = backend->begin_pack(4, 8, {}, {});
  GuardedMatrix rows(DType::i8, 2, 8), wide(DType::i8, 2, 9);
  std::vector<float> scales(2, 1.0f), factors(3, 1.0f);
  EXPECT_EQ(error_of([&] {
              backend->pack_rows(weight, 3, {rows.view(), vector_view(scales)});
            }),
            "pack: rows 3 to 5 of a weight that was begun with n=4");
  EXPECT_EQ(error_of([&] {
              backend->pack_rows(weight, -1, {rows.view(), vector_view(scales)});
            }),
            "pack: rows -1 to 1 of a weight that was begun with n=4");
  EXPECT_EQ(error_of([&] {
              backend->pack_rows(weight, 0, {wide.view(), vector_view(scales)});
            }),
            "pack: rows have k=9, but the weight was begun with k=8");
  EXPECT_EQ(
      error_of([&] {
        backend->pack_rows(weight, 0, {rows.view(), vector_view(scales)}, vector_view(factors));
      }),
      "pack: factors is F32 [3], expected a dense F32 [2]");
  EXPECT_EQ(error_of([&] { backend->begin_pack(3, 8, {}, {}, RowOrder::gate_up); }),
            "pack: a gate_up weight has n=3, expected an even n: the gate's rows, then as many of "
            "the up projection");
}

}  // namespace
}  // namespace octet::test::model
