// A tensor that was widened has one use: seen in the hands of something else, it is no weight.
#include <gtest/gtest.h>

#include "audit/examine.h"
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
using test::run_op;
using test::widened;
using Type = ScalarType;
using Dims = std::vector<int64_t>;

// Two sizes of linears; `between` runs before the product, `after` behind it.
template <class Between, class After>
AuditVerdict verdict_of(const Between& between, const After& after, Type stored = Type::int8) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    for (const int64_t n : {512, 768}) {
      widened(made, stored, n, 256);
      between(made, Dims{n, 256});
      bf16_linear(made, 64, n, 256);
      after(made, Dims{n, 256});
      bf16_linear(made, 64, 256, 1024);
    }
  }
  return examined(made.trace).verdict;
}

void do_nothing(MadeTrace&, const Dims&) {}

TEST(Users, OfATensorThatWasWidened) {
  const auto use = [](const char* op, bool in_heads = false) {
    return [=](MadeTrace& made, const Dims& dims) {
      Dims seen = dims;
      if (in_heads) seen.insert(seen.begin(), 8);
      run_op(made, op, {{Type::bf16, seen}, {Type::bf16, dims}});
    };
  };
  EXPECT_EQ(verdict_of(do_nothing, do_nothing), AuditVerdict::fake_int8);
  for (const char* op : {"aten::where", "aten::lerp_", "aten::mse_loss", "aten::sigmoid"}) {
    EXPECT_EQ(verdict_of(use(op), do_nothing), AuditVerdict::unquantized) << op;
    EXPECT_EQ(verdict_of(do_nothing, use(op)), AuditVerdict::unquantized) << op;
    EXPECT_EQ(verdict_of(use(op), do_nothing, Type::fp8), AuditVerdict::unquantized) << op;
  }
  EXPECT_EQ(verdict_of(use("aten::add", true), do_nothing), AuditVerdict::unquantized);
  EXPECT_EQ(verdict_of(do_nothing, use("aten::add", true)), AuditVerdict::unquantized);
  EXPECT_EQ(verdict_of(use("aten::embedding"), do_nothing), AuditVerdict::unquantized);
  // What other layers do to activations is no use of it.
  const auto activations = [](MadeTrace& made, const Dims&) {
    run_op(made, "aten::gelu", {{Type::bf16, {1, 64, 1024}}});
  };
  EXPECT_EQ(verdict_of(do_nothing, activations), AuditVerdict::fake_int8);
}

TEST(Users, KeysSeenAsHeads) {
  const auto attention = [](MadeTrace& made, const Dims& dims) {
    const Dims heads = {1, dims[1] / 64, dims[0], 64};
    run_op(made, "aten::scaled_dot_product_attention",
           {{Type::bf16, {1, 4, 64, 64}}, {Type::bf16, heads}, {Type::bf16, heads}},
           "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>(Flash_fwd_params)");
  };
  EXPECT_EQ(verdict_of(do_nothing, attention), AuditVerdict::unclear);
}

// Scores of as many elements as the product before had are of two activations.
TEST(Users, ASoftmaxAfterAProductOfTwoActivations) {
  const auto attention = [](MadeTrace& made, const Dims& dims) {
    run_op(made, "aten::bmm",
           {{Type::bf16, {dims[0] / 64, 64, 64}}, {Type::bf16, {dims[0] / 64, 64, 64}}}, kBf16Gemm);
    run_op(made, "aten::_softmax", {{Type::bf16, {1, dims[0] / 64, 64, 64}}});
  };
  EXPECT_EQ(verdict_of(do_nothing, attention), AuditVerdict::fake_int8);
}

TEST(Users, TheNearestOfACodebook) {
  const auto choice = [](MadeTrace& made, const Dims& dims) {
    run_op(made, "aten::argmin", {{Type::bf16, {64, dims[0]}}});
  };
  EXPECT_EQ(verdict_of(do_nothing, choice), AuditVerdict::unquantized);
}

// ZeRO++ and its like: bf16 weights, of which each process has a part, travel as codes.
TEST(Users, CodesThatWereSent) {
  const auto report_of = [](bool made_here) {
    MadeTrace made;
    for (int i = 0; i < kMadeLayers; ++i) {
      for (const int64_t n : {512, 768}) {
        const Dims part = {n / 8, 256};
        if (made_here) run_op(made, "aten::copy_", {{Type::int8, part}, {Type::bf16, part}}, kCast);
        run_op(made, "c10d::_allgather_base_", {{Type::int8, {n, 256}}, {Type::int8, part}},
               "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
        widened(made, Type::int8, n, 256);
        bf16_linear(made, 64, n, 256);
      }
    }
    return examined(made.trace);
  };
  EXPECT_EQ(report_of(true).verdict, AuditVerdict::unquantized);
  EXPECT_EQ(report_of(false).verdict, AuditVerdict::unclear);
}

// Widened in another layer, or before products that had their weights already.
TEST(Users, APairBelongsTogether) {
  const auto report_of = [](bool apart, bool delayed) {
    MadeTrace made;
    for (int i = 0; i < kMadeLayers; ++i) {
      for (const int64_t n : {512, 768}) {
        const std::string name = std::to_string(i) + "." + std::to_string(n);
        const uint32_t outer = made.op("blocks." + name, {}, kNone, true);
        const uint32_t other = made.op("cache." + name, {}, kNone, true);
        widened(made, Type::int8, {n, 256}, apart ? other : outer);
        if (delayed) bf16_linear(made, 64, 256, 1024);
        made.kernel(kBf16Gemm,
                    made.op("aten::mm", {{Type::bf16, {64, 256}}, {Type::bf16, {256, n}}}, outer));
      }
    }
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(report_of(false, false), AuditVerdict::fake_int8);
  EXPECT_EQ(report_of(true, false), AuditVerdict::unclear);
  EXPECT_EQ(report_of(false, true), AuditVerdict::unclear);
}

// A model that was decompressed when it was loaded, and one step of it.
TEST(Users, WidenedAllAtOnceOnce) {
  const auto report_of = [](int steps) {
    MadeTrace made;
    for (int step = 0; step < steps; ++step) {
      for (const int64_t n : {512, 768, 1024}) widened(made, Type::int8, n, 256);
      for (const int64_t n : {512, 768, 1024}) bf16_linear(made, 64, n, 256);
    }
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(report_of(1), AuditVerdict::unclear);
  EXPECT_EQ(report_of(2), AuditVerdict::fake_int8);
}

TEST(Users, StatesOfAnOptimizerAreNoWeights) {
  MadeTrace made;
  for (int step = 0; step < 2; ++step) {
    for (const int64_t n : {512, 768}) bf16_linear(made, 64, n, 256);
    const uint32_t range = made.op("Optimizer.step#AdamW.step", {}, kNone, true);
    for (const int64_t n : {512, 768}) {
      made.kernel(kCast,
                  made.op("aten::copy_", {{Type::bf16, {n, 256}}, {Type::int8, {n, 256}}}, range));
    }
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unquantized);
}

// Masks of all weights, as of a pruned model.
TEST(Users, MasksOfAllWeightsAreNoWeights) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    for (const int64_t n : {512, 768}) {
      const Dims dims = {n, 256};
      run_op(made, "aten::copy_", {{Type::bf16, dims}, {Type::int8, dims}}, kCast);
      run_op(made, "aten::mul", {{Type::bf16, dims}, {Type::bf16, dims}});
      bf16_linear(made, 64, n, 256);
    }
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

// GPTQ gathers a scale for each weight; the next layer's are no use of this layer's weight.
TEST(Users, GatheredScalesAreNoUseOfTheWeightBefore) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    const Dims dims = {256, 512};
    run_op(made, "aten::bitwise_and", {{Type::int32, {32, 8, 512}}});
    run_op(made, "aten::mul", {{Type::bf16, dims}, {Type::int32, dims}});
    run_op(made, "aten::copy_", {{Type::bf16, dims}, {Type::int32, dims}}, kCast);
    bf16_linear(made, 64, 512, 256);
    bf16_linear(made, 64, 256, 512);
    bf16_linear(made, 64, 256, 512);
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::fake_four_bit);
}

// DoRA takes the norm of the weight that was widened; here some layers are in bf16.
TEST(Users, NormsOfWeightsDoNotTakeThemAway) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    for (const int64_t n : {512, 768}) {
      const Dims dims = {n, 256};
      run_op(made, "aten::copy_", {{Type::bf16, dims}, {Type::int8, dims}}, kCast);
      run_op(made, "aten::linalg_vector_norm", {{Type::bf16, dims}});
      run_op(made, "aten::mul", {{Type::bf16, dims}, {Type::bf16, {n, 1}}});
      bf16_linear(made, 64, n, 256);
      bf16_linear(made, 64, 256, 1024);
    }
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

// The same with masks in one kernel that a compiler made, and in one op.
TEST(Users, AMaskOfTheWeightInOneKernel) {
  const auto report_of = [](bool masks) {
    MadeTrace made;
    for (int i = 0; i < kMadeLayers; ++i) {
      Signature operands = {{Type::int8, {512, 256}}, {Type::bf16, {512, 256}}};
      if (masks) operands.push_back({Type::bf16, {512, 256}});
      run_op(made, "triton_poi_fused_mul_0", operands, "triton_poi_fused_mul_0");
      bf16_linear(made, 64, 512, 256);
    }
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(report_of(false), AuditVerdict::fake_int8);
  EXPECT_EQ(report_of(true), AuditVerdict::unclear);
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    const uint32_t op =
        made.op("mylib::masked_linear",
                {{Type::bf16, {64, 256}}, {Type::uint8, {512, 256}}, {Type::bf16, {512, 256}}});
    made.kernel(kMultiply, op);
    made.kernel(kBf16Gemm, op, 100);
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

TEST(Users, OfASumMostProductsMustHaveAWeightThatWasWidened) {
  const auto verdict = [](int64_t widened_calls) {
    MadeTrace made;
    made.trace.has_order = false;
    made.kernel(
        "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(float*, unsigned char*, "
        "float*, __nv_bfloat16*, int, int)",
        kNone, 300, widened_calls);
    made.kernel(kBf16Gemm, kNone, 1000, 40);
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(verdict(30), AuditVerdict::fake_four_bit);
  EXPECT_EQ(verdict(15), AuditVerdict::unclear);  // perhaps when the model was loaded
}

// ggml with a cache in q8_0 and attention in steps, in order, without shapes.
TEST(Users, CachesAroundASoftmaxAreNoWeights) {
  MadeTrace made;
  const auto widen = [&] {
    made.kernel("void dequantize_block_q8_0_f16<false>(void const*, __half*, long)");
  };
  for (int i = 0; i < kMadeLayers; ++i) {
    for (int linear = 0; linear < 3; ++linear) made.kernel(kBf16Gemm);
    widen();
    made.kernel(kBf16Gemm);
    made.kernel("void soft_max_f32<true, 0, 0, __half>(float const*, __half const*)");
    widen();
    made.kernel(kBf16Gemm);
    for (int linear = 0; linear < 4; ++linear) made.kernel(kBf16Gemm);
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unquantized);
}

TEST(Users, MostlyUnknownKernelsAccuseNobody) {
  const auto report_of = [](double unknown_us) {
    MadeTrace made;
    for (int i = 0; i < kMadeLayers; ++i) {
      for (const int64_t n : {512, 768}) {
        widened(made, Type::int8, n, 256);
        bf16_linear(made, 64, n, 256);
      }
    }
    made.kernel("zzz_mystery", kNone, unknown_us);
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(report_of(100), AuditVerdict::fake_int8);
  EXPECT_EQ(report_of(10'000), AuditVerdict::unclear);
}

// A text encoder with widened weights before each picture of a native model of another width.
TEST(Users, ModelsThatTakeTurnsAreTwo) {
  const auto verdict_of = [](int64_t width) {
    MadeTrace made;
    for (int picture = 0; picture < 3; ++picture) {
      for (int i = 0; i < 6; ++i) {
        widened(made, Type::int8, 640, 320);
        bf16_linear(made, 1024, 640, 320);
      }
      for (int i = 0; i < 20; ++i) int8_linear(made, 1024, 512, width);
    }
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(verdict_of(256), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(320), AuditVerdict::fallback);
}

// Half of the linears of a size in bf16: nobody knows whether that was intended.
TEST(Users, HalfOfThemInBf16IsLeftOpen) {
  MadeTrace made;
  for (int i = 0; i < 6; ++i) int8_linear(made, 64, 512, 256);
  for (int i = 0; i < 6; ++i) bf16_linear(made, 64, 512, 256);
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unclear);
}

}  // namespace
}  // namespace octet::audit
