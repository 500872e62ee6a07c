// What becomes of a trace: classes, linears and the verdict. Names are those of PyTorch's kernels.
#include "audit/examine.h"

#include <gtest/gtest.h>

#include "audit/made_linears.h"

namespace octet::audit {
namespace {

using test::bf16_linear;
using test::examined;
using test::int8_linear;
using test::kBf16Gemm;
using test::kCast;
using test::kInt8Gemm;
using test::kMultiply;
using test::MadeTrace;
using test::widened;
using Type = ScalarType;

double us_of(const AuditReport& report, const std::string& key) {
  for (const AuditShare& share : report.classes) {
    if (share.key == key) return share.us;
  }
  return 0;
}

TEST(Examine, PlainBf16IsNotQuantized) {
  MadeTrace made;
  for (int i = 0; i < 4; ++i) bf16_linear(made, 64, 512, 256);
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::unquantized);
  EXPECT_EQ(report.linears, 4);
  EXPECT_EQ(
      report.headline,
      "4 of 4 linears ran in bf16, and no weight was dequantized: this run is not quantized.");
  EXPECT_DOUBLE_EQ(us_of(report, "half_gemm"), 400);
}

TEST(Examine, DequantizedInt8WeightsAreFake) {
  MadeTrace made;
  for (int i = 0; i < 4; ++i) {
    widened(made, Type::int8, 512, 256);
    bf16_linear(made, 64, 512, 256);
  }
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::fake_int8);
  EXPECT_EQ(report.headline, "4 of 4 linears ran as bf16 after dequantization: this is fake INT8.");
  EXPECT_DOUBLE_EQ(us_of(report, "dequantize_weight"), 200);
  ASSERT_EQ(report.layers.size(), 1u);
  EXPECT_DOUBLE_EQ(report.layers[0].dequantize_us, 200);
  EXPECT_EQ(report.layers[0].how, "int8 weight dequantized, then a bf16 GEMM");
  // 600 us, all of linears.
  EXPECT_DOUBLE_EQ(report.saving.linear_share, 1);
  EXPECT_DOUBLE_EQ(report.saving.at_most, 0);  // no bound: nothing else ran
}

TEST(Examine, TheTypeOfTheWeightsDecidesWhichFake) {
  const auto verdict = [](Type stored, int64_t bytes_per_weight_inverse) {
    MadeTrace made;
    const int64_t n = 512, k = 256;
    for (int i = 0; i < 2; ++i) {
      made.kernel(kCast,
                  made.op("mylib::dequantize", {{stored, {n, k / bytes_per_weight_inverse}}}));
      bf16_linear(made, 64, n, k);
    }
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(verdict(Type::fp8, 1), AuditVerdict::fake_fp8);
  EXPECT_EQ(verdict(Type::int8, 1), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict(Type::uint8, 2), AuditVerdict::fake_four_bit);
}

TEST(Examine, CastsOfFloatWeightsAreNoDequantization) {
  MadeTrace made;
  for (int i = 0; i < 4; ++i) {  // autocast
    made.kernel(kCast, made.op("aten::copy_", {{Type::bf16, {512, 256}}, {Type::f32, {512, 256}}}));
    bf16_linear(made, 64, 512, 256);
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unquantized);
}

TEST(Examine, CodesOfActivationsAreNoWeights) {
  MadeTrace made;
  for (int i = 0; i < 4; ++i) {  // quantized and dequantized activations, plain weights
    made.kernel(kCast, made.op("aten::copy_", {{Type::int8, {64, 256}}, {Type::bf16, {64, 256}}}));
    made.kernel(kCast, made.op("aten::copy_", {{Type::bf16, {64, 256}}, {Type::int8, {64, 256}}}));
    bf16_linear(made, 64, 512, 256);
  }
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::unquantized);
  EXPECT_DOUBLE_EQ(us_of(report, "dequantize_weight"), 0);
  EXPECT_DOUBLE_EQ(us_of(report, "quantize_activation"), 80);
}

TEST(Examine, NativeInt8IsNative) {
  MadeTrace made;
  for (int i = 0; i < 3; ++i) int8_linear(made, 64, 512, 256);
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::native_int8);
  EXPECT_EQ(report.headline, "3 of 3 linears ran in native INT8.");
  EXPECT_DOUBLE_EQ(us_of(report, "int8_gemm"), 150);
  EXPECT_DOUBLE_EQ(us_of(report, "quantize_activation"), 15);
  EXPECT_DOUBLE_EQ(report.saving.at_most, 1);
}

TEST(Examine, NativeBesideFakeIsAFallback) {
  MadeTrace made;
  for (int i = 0; i < 3; ++i) int8_linear(made, 64, 512, 256);
  for (int i = 0; i < 2; ++i) {
    widened(made, Type::int8, 512, 256);
    bf16_linear(made, 64, 512, 256);
  }
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::fallback);
  EXPECT_EQ(report.headline,
            "Only 3 of 5 linears, 35 % of their time, ran in native INT8, the other 2 ran as bf16 "
            "after dequantization: this is a fallback.");
}

// Without any dequantization nobody knows whether it was intended.
TEST(Examine, ProtectedLinearsAreNoFallback) {
  MadeTrace made;
  for (int i = 0; i < 9; ++i) int8_linear(made, 64, 512, 256);
  for (int i = 0; i < 6; ++i) bf16_linear(made, 64, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::native_int8);
  for (int i = 0; i < 6; ++i) bf16_linear(made, 64, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

TEST(Examine, OtherPartsOfTheModelMayBeInBf16) {
  MadeTrace made;
  for (int i = 0; i < 3; ++i) int8_linear(made, 64, 512, 256);
  for (int i = 0; i < 30; ++i) bf16_linear(made, 64, 640, 256);  // a text encoder
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::native_int8);
}

TEST(Examine, WithoutShapesACastBeforeAProductLeavesItOpen) {
  MadeTrace made;
  for (int i = 0; i < 4; ++i) {
    made.kernel(kCast, made.op("aten::copy_"));
    made.kernel(kBf16Gemm, made.op("aten::mm"));
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

TEST(Examine, KeysThatWereCodesWaitForNoLinear) {
  MadeTrace made;
  made.kernel(kCast,
              made.op("aten::copy_", {{Type::bf16, {1, 512, 256}}, {Type::int8, {1, 512, 256}}}));
  const uint32_t attention = made.op("aten::scaled_dot_product_attention",
                                     {{Type::bf16, {1, 64, 256}}, {Type::bf16, {1, 512, 256}}});
  made.kernel("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>(Flash_fwd_params)",
              attention);
  bf16_linear(made, 64, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unquantized);
}

TEST(Examine, APictureOrASoundIsNoWeight) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1, 131072}, {1, 2, 256, 256}}) {
    MadeTrace made;
    made.kernel(kCast, made.op("aten::copy_", {{Type::bf16, dims}, {Type::uint8, dims}}));
    bf16_linear(made, 64, 512, 256);
    EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unquantized);
  }
}

TEST(Examine, ExpertsOfOneTensorAreOneConversion) {
  MadeTrace made;
  widened(made, Type::int8, {4, 512, 256});
  for (int i = 0; i < 4; ++i) bf16_linear(made, 16, 512, 256);
  bf16_linear(made, 16, 512, 256);
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.fake, 4);
  EXPECT_EQ(report.floating, 1);
  EXPECT_DOUBLE_EQ(us_of(report, "dequantize_weight"), 50);
  EXPECT_EQ(
      report.headline,
      "4 of 5 linears, 82 % of their time, ran as bf16 after dequantization: this is fake INT8; "
      "the other ran in bf16.");
}

TEST(Examine, PiecesOfAWeightBelongTogether) {
  MadeTrace made;
  for (int layer = 0; layer < 2; ++layer) {
    for (int i = 0; i < 4; ++i) {
      widened(made, Type::int8, 128, 256);
    }
    bf16_linear(made, 64, 512, 256);
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::fake_int8);
}

TEST(Examine, SumsAreSplit) {
  MadeTrace made;
  made.trace.has_order = false;
  made.kernel("void dequantize_block_q8_0_f16<half>(void const*, half*, long)", kNone, 300, 30);
  made.kernel(kBf16Gemm, kNone, 1000, 40);
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::fake_int8);
  EXPECT_EQ(report.fake, 30);
  EXPECT_EQ(report.floating, 10);
}

TEST(Examine, MostlyBf16WithoutSizesIsLeftOpen) {
  MadeTrace made;
  made.trace.has_order = false;
  made.kernel(kInt8Gemm, kNone, 100, 10);
  made.kernel(kBf16Gemm, kNone, 1000, 40);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

TEST(Examine, UnknownKernelsMayHideProducts) {
  MadeTrace made;
  made.kernel("zzz_mystery", kNone, 700);
  made.kernel(kMultiply, kNone, 100);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

TEST(Examine, ProductsWithinAttentionAreNoLinears) {
  MadeTrace made;
  const uint32_t attention = made.op("aten::scaled_dot_product_attention");
  const uint32_t bmm =
      made.op("aten::bmm", {{Type::bf16, {18, 64, 256}}, {Type::bf16, {18, 256, 64}}}, attention);
  made.kernel(kBf16Gemm, bmm, 100);
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::no_linears);
  EXPECT_DOUBLE_EQ(us_of(report, "attention"), 100);
}

TEST(Examine, LinearsAreNamedByTheRangeAroundThem) {
  MadeTrace made;
  const uint32_t step = made.op("ProfilerStep#1", {}, kNone, true);
  const uint32_t layer = made.op("blocks.0.attn.qkv", {}, step, true);
  const uint32_t mm =
      made.op("aten::mm", {{Type::bf16, {64, 256}}, {Type::bf16, {256, 512}}}, layer);
  made.kernel(kBf16Gemm, mm);
  const AuditReport report = examined(made.trace);
  ASSERT_EQ(report.layers.size(), 1u);
  EXPECT_EQ(report.layers[0].layer, "blocks.0.attn.qkv");
  EXPECT_EQ(report.layers[0].n, 512);
}

TEST(Examine, KernelsOfOneOpAreOneLinear) {
  MadeTrace made;
  const uint32_t mm = made.op("aten::mm", {{Type::bf16, {64, 256}}, {Type::bf16, {256, 512}}});
  made.kernel(kBf16Gemm, mm, 100);
  made.kernel(
      "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16, __nv_bfloat16, "
      "float, __nv_bfloat16, true, false, false>(cublasLt::cublasSplitKParams<float>)",
      mm, 10);
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.linears, 1);
  EXPECT_DOUBLE_EQ(report.layers[0].gemm_us, 110);
}

TEST(Examine, InstructionsContradictAName) {
  MadeTrace made;
  made.kernel("fancy_int8_gemm_kernel");
  made.kernel(kInt8Gemm);
  made.trace.kernels[1].int8_instructions = 0;
  made.trace.kernels[1].half_instructions = 1e6;
  const AuditReport report = examined(made.trace);
  EXPECT_GT(us_of(report, "half_gemm"), 0);
}

TEST(Examine, MasksAreNoCodes) {
  MadeTrace made;
  made.kernel(kMultiply, made.op("aten::bitwise_and", {{Type::other, {1, 1, 512, 256}},
                                                       {Type::other, {1, 1, 512, 256}}}));
  made.kernel(kCast, made.op("aten::copy_",
                             {{Type::bf16, {1, 1, 512, 256}}, {Type::other, {1, 1, 512, 256}}}));
  bf16_linear(made, 64, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unquantized);
}

TEST(Examine, ALargeHeadDoesNotHideTheModel) {
  MadeTrace made;
  for (int i = 0; i < 8; ++i) {
    widened(made, Type::int8, 2048, 640);
    bf16_linear(made, 64, 2048, 640);
  }
  bf16_linear(made, 1, 262144, 640);
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::fake_int8);
  EXPECT_EQ(report.fake, 8);
}

TEST(Examine, SmallFloatLinearsCountForNothing) {
  MadeTrace made;
  for (int i = 0; i < 8; ++i) int8_linear(made, 1024, 512, 256);
  bf16_linear(made, 1, 512, 256 + 16);  // of a time step
  EXPECT_EQ(examined(made.trace).headline, "8 of 8 linears ran in native INT8.");
}

// Recipes mix both, on purpose.
TEST(Examine, WeightOnlyBesideNativeIsLeftOpen) {
  MadeTrace made;
  int8_linear(made, 64, 512, 256);
  for (int i = 0; i < 5; ++i) {
    made.kernel("void at::native::tinygemm_m16n8k16_chunk_kernel<float>(int)",
                made.op("aten::_weight_int4pack_mm"));
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

TEST(Examine, UnknownKernelsAreListed) {
  MadeTrace made;
  made.kernel("zzz_mystery", kNone, 7);
  const AuditReport report = examined(made.trace);
  ASSERT_EQ(report.unknown.size(), 1u);
  EXPECT_EQ(report.unknown[0].name, "zzz_mystery");
  EXPECT_DOUBLE_EQ(us_of(report, "unknown"), 7);
}

TEST(Examine, SumsTellFakeByTheNameOfADequantization) {
  MadeTrace made;
  made.trace.has_order = false;
  made.kernel(
      "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(float*, unsigned char*, "
      "float*, __nv_bfloat16*, int, int)",
      kNone, 300, 40);
  made.kernel(kBf16Gemm, kNone, 1000, 40);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::fake_four_bit);
}

TEST(Examine, SavingsFollowAmdahl) {
  MadeTrace made;
  bf16_linear(made, 64, 512, 256);  // 100 us
  made.kernel("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>(Flash_fwd_params)",
              kNone, 100);
  Examination examination;
  examination.add(made.trace);
  const AuditReport report = examination.finish(
      [](int64_t, int64_t, int64_t) { return PathRatios{.bf16 = 2, .fp8 = 1, .source = "test"}; });
  EXPECT_DOUBLE_EQ(report.saving.linear_share, 0.5);
  EXPECT_DOUBLE_EQ(report.saving.at_most, 2);
  EXPECT_DOUBLE_EQ(report.saving.expected, 200.0 / 150);
}

TEST(Examine, TheTimelineHoldsAllOfTheTime) {
  MadeTrace made;
  for (int i = 0; i < 7; ++i) bf16_linear(made, 64, 512, 256);
  const AuditReport report = examined(made.trace);
  double us = 0;
  for (const auto& row : report.timeline.us) {
    for (const double piece : row) us += piece;
  }
  EXPECT_NEAR(us, report.total_us, 1e-6);
}

}  // namespace
}  // namespace octet::audit
