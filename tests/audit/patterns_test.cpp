#include "audit/patterns.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace octet::audit {
namespace {

void expect_good_rows(const std::vector<NameRow>& rows,
                      const NameRow& (*by_name)(std::string_view name)) {
  std::set<std::string> patterns;
  for (const NameRow& row : rows) {
    EXPECT_FALSE(row.example.empty()) << row.pattern;
    EXPECT_FALSE(row.source.empty()) << row.pattern;
    EXPECT_NE(row.work, WorkClass::unknown) << row.pattern;
    EXPECT_TRUE(patterns.insert(row.pattern).second) << row.pattern << " is there twice";
    // Of all rows before, none may take the example: the row would never be reached by it.
    const NameRow& named = by_name(row.example);
    EXPECT_EQ(named.pattern, row.pattern) << row.example;
    EXPECT_EQ(named.work, row.work) << row.example;
    EXPECT_EQ(named.type, row.type) << row.example;
    EXPECT_EQ(named.library, row.library) << row.example;
  }
}

TEST(KernelNames, EveryRowIsReachedByItsExample) {
  expect_good_rows(name_rows().kernels, kernel_by_name);
  expect_good_rows(name_rows().ops, op_by_name);
}

// A verdict about a widened weight needs the type that it had.
TEST(KernelNames, WidenedWeightsHaveTypes) {
  for (const auto* rows : {&name_rows().kernels, &name_rows().ops}) {
    for (const NameRow& row : *rows) {
      if (row.work != WorkClass::dequantize_weight) continue;
      EXPECT_NE(row.type, ScalarType::unknown) << row.pattern;
    }
  }
}

TEST(KernelNames, NothingKnownIsUnknown) {
  EXPECT_EQ(kernel_by_name("some_mystery_kernel").work, WorkClass::unknown);
  EXPECT_EQ(kernel_by_name("some_mystery_kernel").pattern, "");
  EXPECT_EQ(kernel_by_name("").work, WorkClass::unknown);
  EXPECT_EQ(op_by_name("").work, WorkClass::unknown);
  EXPECT_EQ(op_by_name("mylib::frobnicate").work, WorkClass::unknown);
  // Of templates of Inductor only the name could tell, and this one does not.
  EXPECT_EQ(kernel_by_name("triton_tem_fused_0").work, WorkClass::unknown);
  // Which of them, and whether of weights, a bare word does not tell.
  EXPECT_EQ(kernel_by_name("my_dequant_kernel").work, WorkClass::unknown);
}

TEST(KernelNames, LongAndOddNames) {
  const std::string template_name = "void cutlass::device_kernel<" + std::string(1 << 20, 'x');
  EXPECT_EQ(kernel_by_name(template_name).work, WorkClass::unknown);
  EXPECT_EQ(kernel_by_name(std::string("\x00\xff\n*[", 5)).work, WorkClass::unknown);
}

struct Named {
  const char* name;
  WorkClass work;
};

// Names that more than one row could take, and one must not.
TEST(KernelNames, TheMostTellingWordDecides) {
  const Named names[] = {
      // The result of an INT8 or FP8 product is in bf16.
      {"void cutlass::device_kernel<vllm::cutlass_3x_gemm<signed char, cutlass::bfloat16_t, "
       "vllm::c3x::ScaledEpilogue> >(vllm::Params)",
       WorkClass::int8_gemm},
      {"void cutlass::device_kernel<vllm::cutlass_3x_gemm_sm90_fp8<cutlass::float_e4m3_t, "
       "cutlass::bfloat16_t, vllm::c3x::ScaledEpilogue> >(vllm::Params)",
       WorkClass::fp8_gemm},
      {"sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x64", WorkClass::fp8_gemm},
      {"cutlass3x_sm100_tensorop_i256x256x32gemm_s8_s8_s32_s32_s32_256x256x128_0_tnn_align16_2sm",
       WorkClass::int8_gemm},
      {"cutlass_80_wmma_tensorop_i161616gemm_s8_forwardCompat_128x128_32x2_tn_align4",
       WorkClass::int8_gemm},
      {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_nn_align8>"
       "(cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_nn_align8::Params)",
       WorkClass::half_gemm},
      {"nvjet_sm120_qqhsh_mma_128x64x64", WorkClass::fp8_gemm},
      {"nvjet_hss_64x8_64x16_1x1_v_bz_splitK_NNT", WorkClass::half_gemm},
      // Attention is full of products.
      {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
       "cutlass::float_e4m3_t> > >(flash::Params)",
       WorkClass::attention},
      {"fmha_cutlassF_f32_aligned_64x64_rf_sm80", WorkClass::attention},
      // Convolutions are implicit products.
      {"sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32",
       WorkClass::convolution},
      // Kernels of Inductor name the products around them.
      {"triton_poi_fused__to_copy_cutlass_scaled_mm_mul_3", WorkClass::elementwise},
      {"triton_red_fused__int_mm__to_copy_mul_1", WorkClass::elementwise},
      // Scales of int32 sums are no widened weights.
      {"void dequantize_int8_linear_kernel<__nv_bfloat16, __nv_bfloat16>(int const*)",
       WorkClass::elementwise},
      {"dequant_fp8_kernel", WorkClass::unknown},
      {"int8_linear_kernel", WorkClass::unknown},  // of a kernel that widens weights, in the wild
      {"void kdequant_mm_int32_fp16<(int)4, (int)512>(int *, float *)", WorkClass::elementwise},
      {"void dequantize_int8_simple_kernel<__nv_bfloat16>(signed char const*)",
       WorkClass::dequantize_weight},
      // As Nsight Systems writes templates.
      {"void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, "
       "std::array<char *, (unsigned long)3>>(int, T2, T3)",
       WorkClass::elementwise},
      {"void mul_mat_q<(ggml_type)12, (int)64, (bool)0>(const char *, int)", WorkClass::int8_gemm},
      {"void marlin::Marlin<(long)1125899906909952, (long)1125899907892224>(const int4 *)",
       WorkClass::int8_gemm},
      {"void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float, float, float, float>(T1)",
       WorkClass::elementwise},
      // Near misses: types of weights that are widened, and of results.
      {"void cutlass::Kernel<cutlass::gemm::kernel::GemmFpAIntB<cutlass::gemm::threadblock::"
       "DqMmaMultistage<cutlass::half_t, unsigned char> > >(cutlass::gemm::kernel::Params)",
       WorkClass::weight_only_gemm},
      {"void cutlass::Kernel2<cutlass::gemm::kernel::GemmUniversal<cutlass::half_t, unsigned char> "
       ">(cutlass::gemm::Params)",
       WorkClass::half_gemm},
      {"_ZN5aiter45I8gemm_bf16_perTokenI8_BpreShuffle_160x128E", WorkClass::int8_gemm},
      {"my_i8gemm_bf16_out", WorkClass::gemm},
      {"turing_bf16_s1688gemm_bf16_256x128_ldg8_f2f_nn", WorkClass::half_gemm},
      {"void turbomind::gemm_s4_f16_nn<128, 128, 32>(turbomind::half*)",
       WorkClass::weight_only_gemm},
      {"w8a16_int8_matmul_kernel", WorkClass::gemm},
      {"void ctranslate2::ops::dequantize_gemm_output_kernel<__half, ctranslate2::cuda::gelu_func<"
       "__half>, (bool)0, (bool)1>(const int *)",
       WorkClass::elementwise},
      {"Cijk_Alik_Bljk_HHS_BH_Bias_HAS_SAV_UserArgs_MT128x128x64_MI16x16x1_I8_IU1",
       WorkClass::half_gemm},
      {"Cijk_Alik_Bljk_B8F8S_BH_MT256x256x128", WorkClass::fp8_gemm},
      {"Cijk_Alik_Bljk_I8BS_MT64x16x256", WorkClass::int8_gemm},
      {"bmm_Bfloat16_MxE2m1Bfloat16_Fp32_bA32_t128x16x256_s4", WorkClass::weight_only_gemm},
      {"bmm_MxE4m3_MxE2m1MxE4m3_Fp32_Ab32_Bb32_Cb32_t128x8x512", WorkClass::fp8_gemm},
      {"_matmul_NNT_bf16xbf16xmxfp4_16x256x128x1_swiglu", WorkClass::weight_only_gemm},
      // Four bits must hold for both operands.
      {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::collective"
       "::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaRmemAWarpSpecializedMixedInput<4>, "
       "cute::tuple<cutlass::integer_subbyte<4, true>, cutlass::half_t>, cutlass::integer_subbyte<"
       "4, true> > > >(cutlass::Params)",
       WorkClass::weight_only_gemm},
      {"void "
       "cutlass::device_kernel<cutlass::gemm::MainloopSm90TmaGmmaRmemAWarpSpecializedMixedInput"
       "<4>, cutlass::float_e2m1_t, cutlass::bfloat16_t>(cutlass::Params)",
       WorkClass::weight_only_gemm},
      {"void cutlass::Kernel2<cutlass::bfloat16_t, cutlass::integer_subbyte<4, true> >(int)",
       WorkClass::gemm},
      {"void cutlass::Kernel2<cutlass::half_t, cutlass::int4b_t>(int)", WorkClass::gemm},
      {"_ZN7cutlass7Kernel2INS_6half_tENS_15integer_subbyteILi4ELb1EEEEEvT_", WorkClass::gemm},
      {"cutlass3x_sm100_bstensorop_gemm_ue8m0xe4m3_ue8m0xe2m1_f32_bf16_bf16_128x128x256_0_tnn",
       WorkClass::fp8_gemm},
      {"dequant_kernel_248", WorkClass::dequantize_weight},
      {"void vllm::dequantize_k_cache_fp8_kernel<__nv_bfloat16>(int)", WorkClass::attention},
      {"mul_mat_vec_q4_k_f32_f32", WorkClass::weight_only_gemm},
      {"void mul_mat_vec_q<(ggml_type)12, 1>(void const*)", WorkClass::int8_gemm},
      // Mangled, as some profilers leave long names.
      {"_ZN7cutlass13device_kernelIN4vllm24cutlass_3x_gemm_sm90_fp8INS_12float_e4m3_tE",
       WorkClass::fp8_gemm},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE",
       WorkClass::elementwise},
  };
  for (const Named& named : names)
    EXPECT_EQ(kernel_by_name(named.name).work, named.work) << named.name;
}

TEST(KernelNames, OpsWhoseTypesTheirOperandsTellHaveNone) {
  EXPECT_EQ(op_by_name("aten::mm").work, WorkClass::gemm);
  EXPECT_EQ(op_by_name("aten::mm").type, ScalarType::unknown);
  EXPECT_EQ(op_by_name("_C::cutlass_scaled_mm").work, WorkClass::gemm);
  EXPECT_EQ(op_by_name("aten::_int_mm").work, WorkClass::int8_gemm);
  EXPECT_EQ(op_by_name("aten::addmm").work, WorkClass::gemm);
  EXPECT_EQ(op_by_name("aten::add").work, WorkClass::elementwise);
  EXPECT_EQ(op_by_name("aten::addcmul").work, WorkClass::elementwise);
}

TEST(KernelNames, ManyThreadsMayAsk) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(kernel_by_name("ampere_sgemm_128x64_tn").work, WorkClass::single_gemm);
        EXPECT_NE(log_line_for("Using mixed precision operations"), nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WorkClasses, KeysAndNamesAreThere) {
  std::set<std::string_view> keys, names;
  for (int i = 0; i < kWorkClasses; ++i) {
    const auto work = static_cast<WorkClass>(i);
    EXPECT_TRUE(keys.insert(key_of(work)).second);
    EXPECT_TRUE(names.insert(name_of(work)).second);
    EXPECT_EQ(work_class_of(key_of(work)), work);
  }
  EXPECT_EQ(name_of(WorkClass::int8_gemm), "INT8 GEMM");
  EXPECT_EQ(key_of(WorkClass::dequantize_weight), "dequantize_weight");
  EXPECT_EQ(work_class_of("INT8 GEMM"), std::nullopt);
}

TEST(LogLines, EveryRowIsReachedByItsExample) {
  const std::set<std::string> verdicts = {
      "native_int8", "native_fp8",  "native_four_bit", "fake_int8", "fake_fp8", "fake_four_bit",
      "fallback",    "weight_only", "unquantized",     "quantized", "info"};
  for (const LogRow& row : log_rows()) {
    EXPECT_FALSE(row.source.empty()) << row.pattern;
    EXPECT_TRUE(verdicts.contains(row.verdict)) << row.pattern << ": " << row.verdict;
    EXPECT_TRUE(row.meaning.ends_with('.')) << row.pattern;
    const LogRow* line = log_line_for(row.example);
    ASSERT_NE(line, nullptr) << row.example;
    EXPECT_EQ(line - log_line_for(log_rows()[0].example), &row - log_rows().data()) << row.example;
    EXPECT_EQ(line->program, row.program);
    EXPECT_EQ(line->verdict, row.verdict) << row.example;
    EXPECT_EQ(line->meaning, row.meaning);
  }
}

TEST(LogLines, OtherLinesTellNothing) {
  EXPECT_EQ(log_line_for(""), nullptr);
  EXPECT_EQ(log_line_for("[INFO] Prompt executed in 30.82 seconds"), nullptr);
  EXPECT_EQ(log_line_for(std::string(1 << 20, 'x')), nullptr);
}

// What a device could do is no verdict: the line does not tell what format the layers have.
TEST(LogLines, NativeAndEmulatedOpsOfComfyUi) {
  const LogRow* native =
      log_line_for("Native ops: convrot_w4a4, int8_tensorwise , emulated ops: nvfp4");
  const LogRow* emulated =
      log_line_for("Native ops: float8_e4m3fn , emulated ops: int8_tensorwise, nvfp4");
  const LogRow* none = log_line_for("Native ops:  , emulated ops: int8_tensorwise, nvfp4");
  EXPECT_EQ(native->verdict, "info");
  EXPECT_EQ(emulated->verdict, "info");
  EXPECT_NE(native->meaning, emulated->meaning);
  EXPECT_EQ(none->verdict, "info");
}

}  // namespace
}  // namespace octet::audit
