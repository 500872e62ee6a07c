// Codes that are no weights, and weights whose codes are hard to see.
#include <gtest/gtest.h>

#include "audit/examine.h"
#include "audit/linears.h"
#include "audit/made_linears.h"

namespace octet::audit {
namespace {

using test::bf16_linear;
using test::examined;
using test::kBf16Gemm;
using test::kCast;
using test::kMadeLayers;
using test::MadeTrace;
using test::of_layers;
using test::run_op;
using test::widened;
using Type = ScalarType;
using Dims = std::vector<int64_t>;

bool accuses(const AuditReport& report) {
  return is_fake(report.verdict) || report.verdict == AuditVerdict::fallback;
}

void cast_to(MadeTrace& made, const Operand& from, Type to) {
  made.kernel(kCast, made.op("aten::copy_", {{to, from.dims}, from}), 10);
}

// `linear` for two sizes of weights.
template <class Linear>
AuditReport of_sizes(const Linear& linear) {
  return of_layers([&](MadeTrace& made) {
    for (const int64_t n : {512, 768}) linear(made, n);
  });
}

// The op that launches NCCL's kernel has a list of tensors; its caller has their types, and the
// part of this process alone, or all that arrives.
TEST(Codes, SentByOtherProcesses) {
  for (const Type type : {Type::fp8, Type::int8}) {
    for (const int64_t parts : {1, 8}) {
      for (const bool sends : {true, false}) {
        const AuditReport report = of_sizes([&](MadeTrace& made, int64_t n) {
          if (sends) {
            const uint32_t outer =
                made.op("c10d::_allgather_base_", {{type, {n / parts, 256}}, {type, {n / 8, 256}}});
            made.kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                        made.op("record_param_comms", {{Type::other, {}}}, outer));
          }
          widened(made, type, n, 256);
          bf16_linear(made, 64, n, 256);
        });
        EXPECT_EQ(accuses(report), !sends) << report.headline;
      }
    }
  }
}

// Masks, adjacencies and pictures become numbers, too, without scales.
TEST(Codes, WithoutAScale) {
  const auto verdict_of = [](Type type, const auto& scale_codes, const auto& scale_result) {
    return of_sizes([&](MadeTrace& made, int64_t n) {
             cast_to(made, {type, {n, 256}}, Type::bf16);
             scale_codes(made, n);
             bf16_linear(made, 64, n, 256);
             scale_result(made, n);
           })
        .verdict;
  };
  const auto nothing = [](MadeTrace&, int64_t) {};
  const auto by_number = [](const char* op) {
    return [op](MadeTrace& made, int64_t n) {
      run_op(made, op, {{Type::bf16, {n, 256}}, {Type::f64, {}}});
    };
  };
  const auto by_tensor = [](MadeTrace& made, int64_t n) {
    run_op(made, "aten::mul", {{Type::bf16, {n, 256}}, {Type::bf16, {n, 1}}});
  };
  const auto by_offset_and_tensor = [](MadeTrace& made, int64_t n) {
    run_op(made, "aten::addcmul",
           {{Type::bf16, {n, 1}}, {Type::bf16, {n, 256}}, {Type::bf16, {n, 1}}});
  };
  const auto result_by_columns = [](MadeTrace& made, int64_t n) {
    run_op(made, "aten::mul", {{Type::bf16, {64, n}}, {Type::bf16, {n}}});
  };
  const auto result_by_number = [](MadeTrace& made, int64_t n) {
    run_op(made, "aten::mul", {{Type::bf16, {64, n}}, {Type::f64, {}}});
  };
  EXPECT_EQ(verdict_of(Type::uint8, nothing, nothing), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(Type::int8, nothing, nothing), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(Type::uint8, by_number("aten::div"), nothing), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(Type::uint8, nothing, result_by_number), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(Type::int8, by_number("aten::mul"), nothing), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(Type::uint8, by_tensor, nothing), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(Type::uint8, by_offset_and_tensor, nothing), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(Type::uint8, nothing, result_by_columns), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(Type::fp8, nothing, nothing), AuditVerdict::fake_fp8);
}

// A search over embeddings that are kept as codes: each product is an answer. A model has one.
TEST(Codes, WhoseProductsGoToTheHost) {
  for (const int answers : {1, kMadeLayers}) {
    MadeTrace made;
    for (int i = 0; i < kMadeLayers; ++i) {
      for (const int64_t n : {512, 768}) {
        widened(made, Type::int8, n, 256);
        bf16_linear(made, 64, n, 256);
        if (i >= answers) continue;
        made.kernel("Memcpy DtoH (Device -> Pageable)",
                    made.op("aten::copy_", {{Type::bf16, {64, n}}, {Type::bf16, {64, n}}}));
      }
    }
    const AuditReport report = examined(made.trace);
    EXPECT_EQ(accuses(report), answers == 1) << report.headline;
    EXPECT_EQ(report.fake, answers == 1 ? 2 * kMadeLayers : 0);
  }
}

// As diffusers' layerwise casting has it; all weights have one size.
TEST(Codes, KeptAsCodesBetweenUses) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    cast_to(made, {Type::fp8, {512, 512}}, Type::bf16);
    bf16_linear(made, 64, 512, 512);
    cast_to(made, {Type::bf16, {512, 512}}, Type::fp8);
  }
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::fake_fp8);
  EXPECT_EQ(report.fake, kMadeLayers);
}

// A hook of a block widens all weights before it, and makes them codes again after it.
TEST(Codes, KeptAsCodesBetweenBlocks) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    for (const int64_t n : {512, 768}) cast_to(made, {Type::fp8, {n, 256}}, Type::bf16);
    for (const int64_t n : {512, 768}) bf16_linear(made, 64, n, 256);
    for (const int64_t n : {512, 768}) cast_to(made, {Type::bf16, {n, 256}}, Type::fp8);
  }
  EXPECT_EQ(examined(made.trace).fake, 2 * kMadeLayers);
}

// ComfyUI adds the product of a LoRA to what it has just widened: the weight has no other use by
// that. Whatever else has its size leaves no pair.
TEST(Codes, WithALoraAdded) {
  const auto verdict_of = [](int64_t rank) {
    return of_sizes([&](MadeTrace& made, int64_t n) {
             const Operand all = {Type::bf16, {n, 256}};
             cast_to(made, {Type::fp8, {n, 256}}, Type::bf16);
             rank > 0 ? bf16_linear(made, n, 256, rank) : bf16_linear(made, 64, 1024, 1024);
             run_op(made, "aten::mul", {all, {Type::f64, {}}});
             run_op(made, "aten::add_", {all, all});
             bf16_linear(made, 64, n, 256);
           })
        .verdict;
  };
  EXPECT_EQ(verdict_of(16), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(0), AuditVerdict::unquantized);
}

// Preconditioners of a training step are square, and so may be all weights of a model.
TEST(Codes, SquaresOfATrainingStep) {
  const auto verdict_of = [](bool trains, int64_t others) {
    MadeTrace made;
    for (int i = 0; i < 2 * kMadeLayers; ++i) bf16_linear(made, 64, others, 512);
    if (trains) {
      const uint32_t outer = made.op("autograd::engine::evaluate_function: MmBackward0");
      made.kernel(kBf16Gemm,
                  made.op("aten::mm", {{Type::bf16, {64, 768}}, {Type::bf16, {768, 512}}}, outer));
    }
    for (int i = 0; i < kMadeLayers; ++i) {
      for (const int64_t n : {512, 768}) {
        widened(made, Type::fp8, n, n);
        bf16_linear(made, 1024, n, n);
      }
    }
    return examined(made.trace).verdict;
  };
  EXPECT_EQ(verdict_of(true, 768), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(false, 768), AuditVerdict::fake_fp8);
  EXPECT_EQ(verdict_of(true, 512), AuditVerdict::fake_fp8);
}

// HQQ's groups along the other axis.
TEST(Codes, InColumns) {
  const AuditReport report = of_sizes([](MadeTrace& made, int64_t n) {
    const int64_t blocks = n * 512 / 64;
    cast_to(made, {Type::uint8, {64, blocks}}, Type::bf16);
    run_op(made, "aten::sub", {{Type::bf16, {64, blocks}}, {Type::bf16, {1, blocks}}});
    run_op(made, "aten::mul", {{Type::bf16, {64, blocks}}, {Type::bf16, {1, blocks}}});
    bf16_linear(made, 32, n, 512);
  });
  EXPECT_NE(report.verdict, AuditVerdict::unquantized) << report.headline;
}

TEST(Codes, ConvolutionsAlone) {
  MadeTrace made;
  made.kernel("sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs");
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::no_linears);
  EXPECT_EQ(report.headline,
            "No linear ran: what multiplied by weights were convolutions, not judged here.");
}

// A mask for a batch and its heads, of as many tokens as the model is wide.
TEST(Codes, MaskOfABatch) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    widened(made, Type::int8, {1, 1, 512, 512});
    bf16_linear(made, 1024, 512, 512);
  }
  EXPECT_EQ(examined(made.trace).verdict, AuditVerdict::unquantized);
}

TEST(Codes, LookedUpInATable) {
  const auto verdict_of = [](int64_t entries, const auto& after) {
    return of_sizes([&](MadeTrace& made, int64_t n) {
             cast_to(made, {Type::uint8, {n, 256}}, Type::int64);
             run_op(made, "aten::index", {{Type::bf16, {entries}}, {Type::other, {}}});
             after(made, n);
             bf16_linear(made, 64, n, 256);
           })
        .verdict;
  };
  const auto nothing = [](MadeTrace&, int64_t) {};
  const auto scale = [](MadeTrace& made, int64_t n) {
    run_op(made, "aten::mul", {{Type::bf16, {n * 4, 64}}, {Type::bf16, {n * 4, 1}}});
  };
  EXPECT_EQ(verdict_of(256, nothing), AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(256, scale), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(16, scale), AuditVerdict::fake_four_bit);
  EXPECT_EQ(verdict_of(1000, nothing), AuditVerdict::unquantized);
}

// torchao's NF4: two to a byte, in one row; their scales are codes as well, and are expanded.
TEST(Codes, InOneRowWithExpandedScales) {
  const AuditReport report = of_sizes([](MadeTrace& made, int64_t n) {
    const int64_t bytes = n * 256 / 2;
    for (const char* op : {"aten::__rshift__", "aten::bitwise_and"}) {
      run_op(made, op, {{Type::uint8, {bytes}}});
      run_op(made, "aten::index", {{Type::bf16, {16}}, {Type::other, {}}});
    }
    cast_to(made, {Type::int8, {bytes / 32}}, Type::bf16);
    run_op(made, "aten::div", {{Type::bf16, {bytes / 32}}, {Type::bf16, {bytes / 32}}});
    for (int half = 0; half < 2; ++half) {
      run_op(made, "aten::mul", {{Type::bf16, {bytes}}, {Type::bf16, {bytes}}});
    }
    run_op(made, "aten::cat", {{Type::other, {}}});
    bf16_linear(made, 64, n, 256);
  });
  EXPECT_EQ(report.verdict, AuditVerdict::fake_four_bit) << report.headline;
}

// AQLM's tables have vectors of weights; those of a recommender are longer.
TEST(Codes, VectorsOfATable) {
  const auto verdict_of = [](int64_t columns) {
    return of_sizes([&](MadeTrace& made, int64_t n) {
             run_op(made, "aten::embedding_bag",
                    {{Type::f16, {256, columns}}, {Type::int32, {n * 256 / columns, 1}}});
             run_op(made, "aten::mul",
                    {{Type::f16, {n, 256 / columns, 1, columns}}, {Type::f16, {n, 1, 1, 1}}});
             bf16_linear(made, 64, n, 256);
           })
        .verdict;
  };
  EXPECT_EQ(verdict_of(8), AuditVerdict::fake_four_bit);
  EXPECT_EQ(verdict_of(64), AuditVerdict::unquantized);
}

// QLoRA: a gradient multiplies by the same weight, and is no linear that ran without.
TEST(Codes, WidenedInTraining) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) {
    for (const int64_t n : {512, 768}) {
      widened(made, Type::int8, n, 512);
      bf16_linear(made, 64, n, 512);
    }
    bf16_linear(made, 64, 1024, 1024);
  }
  const uint32_t outer = made.op("autograd::engine::evaluate_function: MmBackward0");
  for (int i = 0; i < 2 * kMadeLayers; ++i) {
    for (const int64_t n : {512, 768}) {
      made.kernel(kBf16Gemm,
                  made.op("aten::mm", {{Type::bf16, {64, 512}}, {Type::bf16, {512, n}}}, outer));
    }
  }
  const AuditReport report = examined(made.trace);
  EXPECT_EQ(report.verdict, AuditVerdict::fake_int8) << report.headline;
}

// GPTQ unpacks eight bits to int16, and fewer to int8.
TEST(Codes, UnpackedToMoreBits) {
  const auto verdict_of = [](Type unpacked, bool expanded = false) {
    return of_sizes([&](MadeTrace& made, int64_t n) {
             const Dims codes = {64, 4, n}, groups = {2, 128, n}, of_groups = {2, 1, n};
             run_op(made, "aten::bitwise_right_shift", {{Type::int32, codes}, {Type::int32, {4}}});
             made.kernel(kCast, made.op("aten::copy_", {{unpacked, codes}, {Type::int32, codes}}));
             run_op(made, "aten::bitwise_and", {{unpacked, codes}});
             run_op(made, "aten::mul",
                    {{unpacked, groups}, {Type::f16, expanded ? groups : of_groups}});
             bf16_linear(made, 64, n, 256);
           })
        .verdict;
  };
  EXPECT_EQ(verdict_of(Type::int16), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(Type::int16, true), AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(Type::int8), AuditVerdict::fake_four_bit);
}

// --- sums ---

AuditReport of_sums(const std::vector<std::pair<const char*, int64_t>>& kernels,
                    double gemm_us = 1000) {
  MadeTrace made;
  made.trace.has_order = false;
  for (const auto& [name, calls] : kernels) {
    const double us = std::string_view(name) == kBf16Gemm ? gemm_us : 10;
    made.kernel(name, kNone, us * static_cast<double>(calls), calls);
  }
  return examined(made.trace);
}

TEST(Codes, AnUnknownKernelAsFrequentAsLinears) {
  constexpr const char* kUnknown =
      "void (anonymous namespace)::expand_rows<__nv_bfloat16>(signed char const*, __nv_bfloat16*)";
  const AuditReport frequent = of_sums({{kBf16Gemm, 100}, {kUnknown, 99}});
  EXPECT_EQ(frequent.verdict, AuditVerdict::unclear);
  EXPECT_EQ(frequent.headline,
            "100 of 100 linears ran in bf16, but an unknown kernel (expand_rows) ran about as "
            "often, and may have dequantized their weights.");
  EXPECT_EQ(of_sums({{kBf16Gemm, 100}, {kUnknown, 50}}).verdict, AuditVerdict::unquantized);
  EXPECT_EQ(of_sums({{kBf16Gemm, 100}, {"my_rms_norm_kernel", 99}}).verdict,
            AuditVerdict::unquantized);
}

TEST(Codes, WeightOnlyKernelsThatTakeNoTime) {
  constexpr const char* kMarlin = "void Marlin<256, 1, 8, 8, 4, 8>(int4 const*, int4 const*)";
  EXPECT_EQ(of_sums({{kBf16Gemm, 100}, {kMarlin, 90}}).verdict, AuditVerdict::unclear);
  EXPECT_EQ(of_sums({{kBf16Gemm, 100}, {kMarlin, 90}}, 20).verdict, AuditVerdict::weight_only);
}

// HQQ's kernels widen caches of keys and values as well, two for each attention.
TEST(Codes, CachesOfHqq) {
  constexpr const char* kHqq =
      "void dequantize_4bit_u8_kernel<c10::BFloat16>(unsigned char*, c10::BFloat16*)";
  constexpr const char* kAttention =
      "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>(Flash_fwd_params)";
  const AuditReport cache = of_sums({{kBf16Gemm, 400}, {kAttention, 100}, {kHqq, 200}});
  EXPECT_EQ(cache.verdict, AuditVerdict::unclear) << cache.headline;
  EXPECT_EQ(of_sums({{kBf16Gemm, 700}, {kAttention, 100}, {kHqq, 700}}).verdict,
            AuditVerdict::fake_four_bit);
}

TEST(Codes, BytesThatAreShifted) {
  constexpr const char* kShift =
      "void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<unsigned char, "
      "unsigned char, unsigned char, at::native::rshift_kernel_cuda(at::TensorIteratorBase&)>>";
  EXPECT_EQ(of_sums({{kBf16Gemm, 100}, {kShift, 100}}).verdict, AuditVerdict::unclear);
}

}  // namespace
}  // namespace octet::audit
