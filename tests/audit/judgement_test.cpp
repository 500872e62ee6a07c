// What an accusation needs: each case has an innocent twin, or is one.
#include <gtest/gtest.h>

#include "audit/examine.h"
#include "audit/linear_book.h"
#include "audit/made_linears.h"

namespace octet::audit {
namespace {

using test::bf16_linear;
using test::examined;
using test::int8_linear;
using test::kBf16Gemm;
using test::kCast;
using test::kMadeLayers;
using test::kMultiply;
using test::MadeTrace;
using test::of_layers;
using test::run_op;
using test::widened;
using Type = ScalarType;
using Dims = std::vector<int64_t>;

void cast(MadeTrace& made, Type from, const Dims& dims, Type to = Type::bf16) {
  made.kernel(kCast, made.op("aten::copy_", {{to, dims}, {from, dims}}), 10);
}

TEST(Judgement, OnePairMayBeChance) {
  MadeTrace made;
  widened(made, Type::int8, 512, 256);
  for (int i = 0; i < 5; ++i) bf16_linear(made, 64, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
  // A weight is widened each time: most of these were not.
  widened(made, Type::int8, 512, 256);
  bf16_linear(made, 64, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
  for (int i = 0; i < 3; ++i) {
    widened(made, Type::int8, 512, 256);
    bf16_linear(made, 64, 512, 256);
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::fake_int8);
}

TEST(Judgement, APairIsPrinted) {
  MadeTrace made;
  for (int i = 0; i < 3; ++i) {
    const uint32_t layer = made.op("blocks." + std::to_string(i) + ".mlp", {}, kNone, true);
    widened(made, Type::int8, {512, 256}, layer);
    made.kernel(kBf16Gemm,
                made.op("aten::mm", {{Type::bf16, {64, 256}}, {Type::bf16, {256, 512}}}, layer));
  }
  const AuditReport report = examined(made.trace);
  ASSERT_EQ(report.pairs.size(), 1u);
  EXPECT_EQ(report.pairs[0].text, "int8[512,256] -> bf16, then mm with k = 256, in 3 layers");
  EXPECT_TRUE(report.pairs[0].certain);
}

TEST(Judgement, InputsOfTheWeightsSizeLeaveItOpen) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    cast(made, Type::int8, {512, 256});  // m is n: whose codes are these?
    bf16_linear(made, 512, 512, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::unclear);
  ASSERT_EQ(report.pairs.size(), 1u);
  EXPECT_FALSE(report.pairs[0].certain);
}

// Beside others that can be nothing but weights, they are weights as well.
TEST(Judgement, SquareProductsFollowTheOthers) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    widened(made, Type::int8, 512, 256);
    bf16_linear(made, 512, 512, 256);
    widened(made, Type::int8, 1024, 256);
    bf16_linear(made, 512, 1024, 256);
  });
  EXPECT_EQ(report.fake, 2 * kMadeLayers);
}

TEST(Judgement, AMaskIsNoWeight) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    cast(made, Type::int8, {512, 256});
    run_op(made, "aten::mul", {{Type::bf16, {512, 256}}, {Type::bf16, {512, 256}}});
    bf16_linear(made, 64, 512, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::unclear);
}

// FP8 is no mask: scales of blocks are expanded to the weight's size.
TEST(Judgement, ExpandedScalesAreScales) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    cast(made, Type::fp8, {512, 256});
    run_op(made, "aten::mul", {{Type::bf16, {512, 256}}, {Type::bf16, {512, 256}}});
    bf16_linear(made, 64, 512, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::fake_fp8);
}

TEST(Judgement, AveragesAreWrittenBack) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    cast(made, Type::int8, {512, 256});
    run_op(made, "aten::add_", {{Type::bf16, {512, 256}}, {Type::bf16, {512, 256}}});
    cast(made, Type::bf16, {512, 256}, Type::int8);
    bf16_linear(made, 64, 512, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::unquantized);
}

// Scores of a cache of latents, which is where a weight would be.
TEST(Judgement, KeysBeforeASoftmaxAreNoWeights) {
  const auto layer = [](const char* after) {
    return of_layers([&](MadeTrace& made) {
      widened(made, Type::int8, 512, 256);
      bf16_linear(made, 64, 512, 256);
      run_op(made, after, {{Type::bf16, {64, 512}}});
    });
  };
  EXPECT_EQ(layer("aten::_softmax").verdict, AuditVerdict::unquantized);
  EXPECT_EQ(layer("aten::gelu").verdict, AuditVerdict::fake_int8);
}

TEST(Judgement, Int8AttentionIsNoLinear) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    int8_linear(made, 64, 512, 256);
    run_op(made, "aten::_softmax", {{Type::f32, {64, 512}}});
    bf16_linear(made, 64, 1024, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::unquantized);
}

TEST(Judgement, ValuesBeforeAttentionAreNoWeights) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    cast(made, Type::int8, {512, 256});
    made.kernel("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>(Flash_fwd_params)");
    bf16_linear(made, 64, 512, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::unquantized);
}

TEST(Judgement, SavedActivationsOfABackwardAreNoWeights) {
  const auto report_of = [](const char* around) {
    return of_layers([&](MadeTrace& made) {
      const uint32_t outer = made.op(around);
      widened(made, Type::int8, 512, 256);
      made.kernel(kBf16Gemm,
                  made.op("aten::mm", {{Type::bf16, {128, 512}}, {Type::bf16, {512, 256}}}, outer));
    });
  };
  EXPECT_EQ(report_of("autograd::engine::evaluate_function: MmBackward0").verdict,
            AuditVerdict::unquantized);
  EXPECT_EQ(report_of("mylib::layer").verdict, AuditVerdict::fake_int8);
}

TEST(Judgement, PaddedWeightsAreWeights) {
  const auto report_of = [](int64_t rows) {
    return of_layers([&](MadeTrace& made) {
      widened(made, Type::int8, rows, 256);
      bf16_linear(made, 64, 500, 256);
    });
  };
  EXPECT_EQ(report_of(512).verdict, AuditVerdict::fake_int8);
  EXPECT_EQ(report_of(700).verdict, AuditVerdict::unquantized);
}

TEST(Judgement, OneTensorOfQueriesKeysAndValues) {
  const auto report_of = [](int64_t rows) {
    return of_layers([&](MadeTrace& made) {
      widened(made, Type::int8, rows, 256);
      bf16_linear(made, 64, 512, 256);
      bf16_linear(made, 64, 128, 256);
      bf16_linear(made, 64, 128, 256);
    });
  };
  EXPECT_EQ(report_of(768).fake, 3 * kMadeLayers);
  EXPECT_EQ(report_of(768).verdict, AuditVerdict::fake_int8);
  EXPECT_EQ(report_of(1000).fake, 0);  // these are no parts of it
}

TEST(Judgement, HqqUnpacksSubtractsAndScales) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    const Dims packed = {1024, 64}, unpacked = {2048, 64}, groups = {2048, 1};
    run_op(made, "aten::bitwise_and", {{Type::uint8, packed}});
    run_op(made, "aten::__rshift__", {{Type::uint8, packed}});
    cast(made, Type::uint8, packed);
    cast(made, Type::uint8, packed);
    run_op(made, "aten::sub", {{Type::bf16, unpacked}, {Type::bf16, groups}});
    run_op(made, "aten::mul", {{Type::bf16, unpacked}, {Type::bf16, groups}});
    bf16_linear(made, 64, 512, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::fake_four_bit);
}

TEST(Judgement, Nf4ByATable) {
  const auto report_of = [](int64_t entries) {
    return of_layers([&](MadeTrace& made) {
      run_op(made, "aten::index", {{Type::bf16, {entries}}, {Type::other, {}}});
      run_op(made, "aten::mul", {{Type::bf16, {2048, 64}}, {Type::bf16, {2048, 1}}});
      bf16_linear(made, 64, 512, 256);
    });
  };
  EXPECT_EQ(report_of(16).verdict, AuditVerdict::fake_four_bit);
  EXPECT_EQ(report_of(77).verdict, AuditVerdict::unquantized);  // some other table
}

// As optimum-quanto does: the op takes codes and multiplies in bf16.
TEST(Judgement, AnOpThatTakesCodesAndMultipliesInBf16) {
  const auto report_of = [](bool casts) {
    return of_layers([&](MadeTrace& made) {
      const uint32_t op =
          made.op("quanto::qbytes_mm",
                  {{Type::bf16, {1024, 256}}, {Type::fp8, {512, 256}}, {Type::bf16, {512, 1}}});
      if (casts) made.kernel(kCast, op);
      made.kernel(kBf16Gemm, op, 100);
    });
  };
  EXPECT_EQ(report_of(true).verdict, AuditVerdict::fake_fp8);
  EXPECT_EQ(report_of(false).verdict, AuditVerdict::weight_only);
}

TEST(Judgement, OutliersAndLorasAreSmall) {
  const AuditReport report = of_layers([](MadeTrace& made) {
    int8_linear(made, 64, 512, 1024);
    widened(made, Type::int8, 512, 12);
    bf16_linear(made, 64, 512, 12);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::native_int8);
}

TEST(Judgement, FakeAndNativeOneAfterTheOtherMayBeTwoModels) {
  MadeTrace made;
  for (int i = 0; i < 20; ++i) {
    widened(made, Type::int8, 640, 320);
    bf16_linear(made, 64, 640, 320);
  }
  for (int i = 0; i < 20; ++i) int8_linear(made, 1024, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

void in_layer(MadeTrace& made, const std::string& layer, bool native) {
  const uint32_t range = made.op(layer, {}, kNone, true);
  if (native) {
    made.kernel(
        test::kInt8Gemm,
        made.op("aten::_int_mm", {{Type::int8, {64, 256}}, {Type::int8, {256, 512}}}, range), 100);
    return;
  }
  widened(made, Type::int8, {512, 256}, range);
  made.kernel(kBf16Gemm,
              made.op("aten::mm", {{Type::bf16, {64, 256}}, {Type::bf16, {256, 512}}}, range), 10);
}

TEST(Judgement, ModelsAreJudgedApart) {
  MadeTrace made;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    in_layer(made, "text_encoder.encoder.layers." + number + ".mlp", false);
    in_layer(made, "transformer.blocks." + number + ".mlp", true);
  }
  const AuditReport report = examined(made.trace);
  ASSERT_EQ(report.models.size(), 2u);
  EXPECT_EQ(report.models[0].name, "transformer");
  EXPECT_EQ(report.models[0].verdict, AuditVerdict::native_int8);
  EXPECT_EQ(report.models[1].name, "text_encoder");
  EXPECT_EQ(report.models[1].verdict, AuditVerdict::fake_int8);
  EXPECT_EQ(report.verdict, AuditVerdict::native_int8);
  EXPECT_EQ(report.headline, "transformer: 4 of 4 linears ran in native INT8.");
}

TEST(Judgement, NamesOfModels) {
  EXPECT_EQ(model_of("transformer.blocks.0.attn.qkv"), "transformer");
  EXPECT_EQ(model_of("text_encoder.text_model.encoder.layers.3.mlp"), "text_encoder");
  EXPECT_EQ(model_of("model.layers.0.mlp"), "model");
  EXPECT_EQ(model_of("model.visual.blocks.0.mlp"), "model.visual");
  EXPECT_EQ(model_of("blocks.0.attn.qkv"), "");
  EXPECT_EQ(model_of("final_layer.linear"), "");
  EXPECT_EQ(model_of(""), "");
}

// Steps and calls of an engine are no layers.
TEST(Judgement, StepsAreNoLayers) {
  for (const char* step :
       {"ProfilerStep#3", "execute_context_1(128)_generation_4(4)", "execute_model",
        "gpu_model_runner: forward", "gpu_model_runner: preprocess", "forward", "denoise step 3"}) {
    MadeTrace made;
    const uint32_t range = made.op(step, {}, kNone, true);
    made.kernel(kBf16Gemm,
                made.op("aten::mm", {{Type::bf16, {64, 256}}, {Type::bf16, {256, 512}}}, range));
    const AuditReport report = examined(made.trace);
    ASSERT_EQ(report.layers.size(), 1u);
    EXPECT_EQ(report.layers[0].layer, "") << step;
  }
}

TEST(Judgement, UnknownKernelsHideWhatRan) {
  const auto report_of = [](const char* name, double us) {
    MadeTrace made;
    for (int i = 0; i < 4; ++i) bf16_linear(made, 64, 512, 256);
    made.kernel(name, kNone, us);
    return examined(made.trace);
  };
  const AuditReport hidden = report_of("void zzz_mystery<8>(int)", 100);
  EXPECT_EQ(hidden.verdict, AuditVerdict::unclear);
  EXPECT_NE(hidden.headline.find("zzz_mystery"), std::string::npos);
  EXPECT_EQ(report_of("void zzz_mystery<8>(int)", 30).verdict, AuditVerdict::unquantized);
  // It says what else it is.
  EXPECT_EQ(report_of("my_fancy_allreduce_thing", 1000).verdict, AuditVerdict::unquantized);
  EXPECT_EQ(report_of("my_quantize_tokens", 1000).verdict, AuditVerdict::unquantized);
  EXPECT_EQ(report_of("my_dequantize_kv_cache", 1000).verdict, AuditVerdict::unquantized);
  const AuditReport dequantizes = report_of("my_dequant_kernel", 100);
  EXPECT_EQ(dequantizes.verdict, AuditVerdict::unclear);
  EXPECT_NE(dequantizes.headline.find("my_dequant_kernel"), std::string::npos);
}

TEST(Judgement, CachesOfGgmlAreWidenedAsWeightsAre) {
  const auto report_of = [](const char* dequantize, int64_t attentions) {
    MadeTrace made;
    made.trace.has_order = false;
    made.kernel(dequantize, kNone, 300, 30);
    made.kernel(kBf16Gemm, kNone, 1000, 40);
    if (attentions > 0) {
      made.kernel("void flash_attn_ext_f16<256, 256, 8, 8, false>(char const*)", kNone, 100,
                  attentions);
    }
    return examined(made.trace).verdict;
  };
  const char* q8 = "void dequantize_block_q8_0_f16<false>(void const*, __half*, long)";
  EXPECT_EQ(report_of(q8, 15), AuditVerdict::unclear);
  EXPECT_EQ(report_of(q8, 0), AuditVerdict::fake_int8);
  // More than keys and values of all attentions.
  EXPECT_EQ(report_of(q8, 5), AuditVerdict::fake_int8);
  const char* q4_k = "void dequantize_block_q4_K<__half>(void const*, __half*)";
  EXPECT_EQ(report_of(q4_k, 15), AuditVerdict::fake_four_bit);
}

AuditVerdict of_log(const std::vector<std::string>& verdicts) {
  Trace trace;
  for (const std::string& verdict : verdicts) trace.log.push_back({"line", "It says so.", verdict});
  return examined(trace).verdict;
}

// A text encoder in GGUF does not make an FP8 model fake.
TEST(Judgement, LogsOfTwoModelsAreLeftOpen) {
  EXPECT_EQ(of_log({"fake_int8", "info"}), AuditVerdict::fake_int8);
  EXPECT_EQ(of_log({"fake_four_bit"}), AuditVerdict::fake_four_bit);
  EXPECT_EQ(of_log({"fake_int8", "native_fp8"}), AuditVerdict::unclear);
  EXPECT_EQ(of_log({"fake_int8", "quantized"}), AuditVerdict::unclear);
  EXPECT_EQ(of_log({"native_fp8", "quantized"}), AuditVerdict::native_fp8);
  EXPECT_EQ(of_log({"native_four_bit"}), AuditVerdict::native_four_bit);
  EXPECT_EQ(of_log({"native_fp8", "weight_only"}), AuditVerdict::unclear);
  EXPECT_EQ(of_log({"quantized"}), AuditVerdict::unclear);
  EXPECT_EQ(of_log({"unquantized"}), AuditVerdict::unquantized);
  EXPECT_EQ(of_log({"unquantized", "quantized"}), AuditVerdict::unclear);
  // One checkpoint in two types, both native.
  EXPECT_EQ(of_log({"native_four_bit", "native_fp8"}), AuditVerdict::native_fp8);
  // One line for each linear: a head in fp32 is nothing, a body in fp32 is.
  EXPECT_EQ(of_log({"native_int8", "native_int8", "unquantized"}), AuditVerdict::native_int8);
  EXPECT_EQ(of_log({"native_int8", "unquantized", "unquantized"}), AuditVerdict::unclear);
}

}  // namespace
}  // namespace octet::audit
