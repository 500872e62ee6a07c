// What people paste: tables that profilers print, and files of AMD's and TensorRT's tools.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "audit/examine.h"
#include "audit/made_linears.h"
#include "audit/read_trace.h"
#include "base/error.h"
#include "formats/error_message.h"

using namespace octet::audit;  // NOLINT: tests

namespace {

Trace read_pasted(std::string_view text) {
  octet::ByteStream bytes(text, "test");
  return read_stream(bytes);
}

const std::string& pasted_kernel(const Trace& trace, size_t kernel) {
  return trace.names.at(trace.kernels.at(kernel).name);
}

// Each line with something before it.
std::string with_prefix(const std::string& prefix, std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines += prefix + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(end + 1);
  }
  return lines;
}

const char* const kCudaTable = R"(
-------------------------------------------  ----------  ----------  ----------  ----------
                                       Name    Self CPU   CPU total   Self CUDA  # of Calls
-------------------------------------------  ----------  ----------  ----------  ----------
                              ProfilerStep*   100.000us     5.000ms     0.000us           1
                              ProfilerStep*     0.000us     0.000us    10.000ms           1
                               aten::linear   111.000us     1.200ms     0.000us         204
                              aten::_int_mm   257.550us   357.550us     1.500ms         204
cutlass_80_tensorop_i16832gemm_s8_256x12...     0.000us     0.000us     1.500ms         204
void at::native::vectorized_elementwise_...     0.000us     0.000us   400.000us         408
           Memcpy HtoD (Pageable -> Device)     0.000us     0.000us   100.000us           3
                           cudaLaunchKernel     1.000ms     1.000ms     0.000us         612
-------------------------------------------  ----------  ----------  ----------  ----------
Self CPU time total: 5.000ms
Self CUDA time total: 2.000ms
)";

void expect_cuda_table(const Trace& trace) {
  EXPECT_EQ(trace.format, "table of PyTorch's profiler");
  EXPECT_FALSE(trace.has_order);
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(pasted_kernel(trace, 0), "cutlass_80_tensorop_i16832gemm_s8_256x12...");
  EXPECT_DOUBLE_EQ(trace.kernels[0].us, 1500);
  EXPECT_EQ(trace.kernels[0].calls, 204);
  EXPECT_EQ(pasted_kernel(trace, 1), "void at::native::vectorized_elementwise_...");
  EXPECT_TRUE(trace.kernels[2].is_transfer);
}

const char* const kNsysText =
    R"(
 ** CUDA API Summary (cuda_api_sum):

 Time (%)  Total Time (ns)  Num Calls  Avg (ns)   Name
 --------  ---------------  ---------  ---------  ----------------
     99.0      900,000,000         30  1,000,000  cudaLaunchKernel

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)                       Name                   
 --------  ---------------  ---------  ---------  ---------------------------------------------
     60.0       12,345,000         48  257,201.6  void gemm<(int)2, true>(signed char *, int) …
     40.0        4,000,000          2  2,000,000  ampere_bf16_s16816gemm_bf16_128x128

)";

TEST(Pasted, TheTableOfSglangsAnalysis) {
  const Trace trace = read_pasted(R"(### Kernel Table
| Stage | Kernel | Category | GPU time | Share | Launches | Python | CPU op |
| --- | --- | --- | ---: | ---: | ---: | --- | --- |
| decode | nvjet_tst_512x8_64x3_2x1_v_bz_TNT | gemm | 9.23 ms | 24.0% | 20 | a.py:8 | aten::mm |
| decode | `_w8a8_block_int8_matmul` | gemm | 250.5 us | 1.0% | 40 | a.py:8 f | x |

### Overlap Table
| Kernel | Category | GPU time | Share | Launches |
| --- | --- | ---: | ---: | ---: |
| nvjet_tst_512x8_64x3_2x1_v_bz_TNT | gemm | 9.23 ms | 24.0% | 20 |
)");
  EXPECT_FALSE(trace.has_order);
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_EQ(pasted_kernel(trace, 0), "nvjet_tst_512x8_64x3_2x1_v_bz_TNT");
  EXPECT_DOUBLE_EQ(trace.kernels[0].us, 9230);
  EXPECT_EQ(trace.kernels[0].calls, 20);
  EXPECT_EQ(pasted_kernel(trace, 1), "_w8a8_block_int8_matmul");
  EXPECT_DOUBLE_EQ(trace.kernels[1].us, 250.5);
}

TEST(Pasted, AMarkdownTableWithItsUnitInTheHeader) {
  const Trace trace = read_pasted(
      "| # | Category | Kernel | % Time | Count | Total (ms) | Avg (us) |\n"
      "|---|----------|--------|--------|-------|------------|----------|\n"
      "| 1 | **AllReduce** | `cross_device_reduce_2stage<bf16, 4>` | **22.7%** | 984 | 77.7 | 78.9 "
      "|\n");
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(pasted_kernel(trace, 0), "cross_device_reduce_2stage<bf16, 4>");
  EXPECT_DOUBLE_EQ(trace.kernels[0].us, 77700);
  EXPECT_EQ(trace.kernels[0].calls, 984);
}

// Modules have the time of what is within them.
TEST(Pasted, TheTreeOfVllmsLayerwiseProfiler) {
  const Trace trace = read_pasted(R"(
name                                                   | cuda_time_us | pct_cuda_... | invocations
====================================================================================================
LlamaForCausalLM                                       |     31788.89 |        97.33 |        1.00
|- LlamaModel                                          |     31788.89 |        97.33 |        1.00
|-- VocabParallelEmbedding(weight=bfloat16[128256, ... |        59.20 |         0.18 |        1.00
|--- void at::native::(anonymous namespace)::indexS... |        59.20 |         0.18 |        1.00
|-- LlamaDecoderLayer                                  |     31729.69 |        97.15 |       32.00
|--- cutlass_80_tensorop_i16832gemm_s8_256x128_64x3... |     31729.69 |        97.15 |      128.00
LogitsProcessor                                        |       700.25 |         2.14 |        1.00
|- nvjet_tst_512x8_64x3_2x1_v_bz_TNT                   |       700.25 |         2.14 |        1.00
)");
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(pasted_kernel(trace, 1), "cutlass_80_tensorop_i16832gemm_s8_256x128_64x3...");
  EXPECT_DOUBLE_EQ(trace.kernels[1].us, 31729.69);
  EXPECT_EQ(trace.kernels[1].calls, 128);
  EXPECT_EQ(pasted_kernel(trace, 2), "nvjet_tst_512x8_64x3_2x1_v_bz_TNT");
}

TEST(Pasted, OnnxRuntimesOperatorsFromPerfstats) {
  const auto verdict_of = [](const char* product, const char* other) {
    const std::string text =
        std::string(
            "op_type               duration    percent     count\n"
            "--------------------  ----------  ----------  ----------\n") +
        product + "             90000       66.0656981  48\n" + other +
        "  40000       30.0        48\nGelu                  4000        3.0         12\n";
    const Trace trace = read_pasted(text);
    EXPECT_EQ(trace.ops.size(), 108u);
    Examination examination;
    examination.add(trace);
    return examination.finish({}).verdict;
  };
  const char* const linear = "DequantizeLinear    ";
  const char* const softmax = "Softmax             ";
  EXPECT_EQ(verdict_of("MatMul   ", softmax), octet::AuditVerdict::unquantized);
  EXPECT_EQ(verdict_of("MatMul   ", linear), octet::AuditVerdict::unclear);
  EXPECT_EQ(verdict_of("MatMulInteger", softmax), octet::AuditVerdict::native_int8);
}

TEST(Pasted, WhatComfyUiSaysOfACheckpoint) {
  const auto verdict_of = [](const char* what, const char* then) {
    const Trace trace = read_pasted(std::string(what) + "\n" + then + "\n");
    Examination examination;
    examination.add(trace);
    return examination.finish({}).verdict;
  };
  const char* const encoder =
      "CLIP/text encoder model load device: cuda:0, offload device: cpu, current: cpu\n"
      "model weight dtype torch.bfloat16, manual cast: None\nmodel_type FLUX";
  const char* const model = "model weight dtype torch.float16, manual cast: None";
  const char* const gguf = "gguf qtypes: F32 (50), Q8_0 (169)";
  const char* const fp8 = "Using scaled fp8: fp8 matrix mult: False, scale input: False";
  EXPECT_EQ(verdict_of(gguf, encoder), octet::AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(gguf, model), octet::AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(gguf, "Prompt executed in 2 seconds"), octet::AuditVerdict::fake_int8);
  EXPECT_EQ(verdict_of(fp8, encoder), octet::AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(fp8, "Requested to load WanTEModel"), octet::AuditVerdict::unclear);
  EXPECT_EQ(verdict_of(fp8, "model_type FLUX"), octet::AuditVerdict::fake_fp8);
}

// Shapes without types: a copy of a weight's size for each product may have widened it.
TEST(Pasted, ShapesAloneDoNotTellThatNothingWasDequantized) {
  const auto verdict_of = [](const char* copied) {
    const std::string rule =
        "------------  ----------  ----------  ----------  ----------  ------------------------\n";
    const std::string text =
        rule + "Name            Self CPU   CPU total   Self CUDA  # of Calls  Input Shapes\n" +
        rule +
        "aten::mm         5.000ms     5.000ms    90.000ms         224  [[64, 256], [256, 512]]\n"
        "aten::copy_      5.000ms     5.000ms    60.000ms         224  " +
        copied + "\n" + rule;
    Examination examination;
    examination.add(read_pasted(text));
    return examination.finish({}).verdict;
  };
  EXPECT_EQ(verdict_of("[[512, 256], [512, 256], []]"), octet::AuditVerdict::unclear);
  EXPECT_EQ(verdict_of("[[64, 256], [64, 256], []]"), octet::AuditVerdict::unquantized);
}

}  // namespace

TEST(Pasted, TableOfTorchWithKernels) {
  expect_cuda_table(read_pasted(kCudaTable));
  expect_cuda_table(read_pasted("My run:\n```\n" + std::string(kCudaTable) + "```\nWhy?\n"));
  expect_cuda_table(read_pasted(with_prefix("> ", kCudaTable)));
  expect_cuda_table(read_pasted(with_prefix("2026-11-18 12:00:00,123 - INFO ", kCudaTable)));
  // The same calls again, sorted otherwise.
  expect_cuda_table(read_pasted(std::string(kCudaTable) + kCudaTable));
}

// As many copies as products, and the kernels of the copies were cut off.
TEST(Pasted, CopiesWithoutTheirKernelsMayWiden) {
  const auto table = [](int copies) {
    return fmt::format(R"(
-------------------  ------------  ------------  ------------  ------------  ------------
               Name      Self CPU     CPU total     Self CUDA    CUDA total    # of Calls
-------------------  ------------  ------------  ------------  ------------  ------------
        aten::copy_       5.000ms       5.000ms      30.000ms      30.000ms  {:12}
           aten::mm       3.000ms       3.000ms      60.000ms      60.000ms           224
nvjet_tst_256x128_h       0.000us       0.000us      60.000ms      60.000ms           224
-------------------  ------------  ------------  ------------  ------------  ------------
)",
                       copies);
  };
  EXPECT_EQ(octet::test::examined(read_pasted(table(224))).verdict, octet::AuditVerdict::unclear);
  EXPECT_EQ(octet::test::examined(read_pasted(table(100))).verdict,
            octet::AuditVerdict::unquantized);
}

TEST(Pasted, TableOfTorchOnAHostWithShapes) {
  const Trace trace = read_pasted(
      "------------  ----------  --------  ---------  ----------  --------------------------  \n"
      "        Name  Self CPU %  Self CPU  CPU total  # of Calls                Input Shapes  \n"
      "------------  ----------  --------  ---------  ----------  --------------------------  \n"
      "aten::linear       1.00%  10.000us  900.000us           2  [[64, 32], [16, 32], [16]]  \n"
      " aten::addmm      89.00%  89.000us   89.000us           2  [[16], [64, 32], [32, 16]]  \n"
      "   aten::mul      10.00%   1.000ms    1.000ms           1              [[64, 16], []]  \n"
      "------------  ----------  --------  ---------  ----------  --------------------------  \n");
  EXPECT_TRUE(trace.is_host_only());
  ASSERT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(trace.names.at(trace.ops[0].name), "aten::addmm");
  EXPECT_EQ(trace.ops[0].self_us, 44.5f);
  const Signature& operands = trace.signatures.at(trace.ops[0].signature);
  ASSERT_EQ(operands.size(), 3u);
  EXPECT_EQ(operands[1].dims, (std::vector<int64_t>{64, 32}));
  EXPECT_EQ(operands[1].type, ScalarType::unknown);
}

TEST(Pasted, TablesOfNsightSystems) {
  for (const std::string& text : {std::string(kNsysText), with_prefix("[INFO] ", kNsysText)}) {
    const Trace trace = read_pasted(text);
    EXPECT_EQ(trace.format, "Nsight Systems table");
    ASSERT_EQ(trace.kernels.size(), 2u);
    EXPECT_EQ(pasted_kernel(trace, 0), "void gemm<(int)2, true>(signed char *, int) …");
    EXPECT_EQ(trace.kernels[0].us, 12345);
    EXPECT_EQ(trace.kernels[0].calls, 48);
  }
}

TEST(Pasted, TraceOfNsightSystemsWithEmptyCells) {
  const Trace trace = read_pasted(
      " Start (ns)  Duration (ns)  GrdX  GrdY  GrdZ  BlkX  BlkY  BlkZ  Device  Name         \n"
      " ----------  -------------  ----  ----  ----  ----  ----  ----  ------  -------------\n"
      "      1,000         50,000                                      H200    [CUDA memset]\n"
      "     60,000        443,520     4     2     1   128     1     1  H200    gemm(a, b)   \n");
  EXPECT_TRUE(trace.has_order);
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_TRUE(trace.kernels[0].is_transfer);
  EXPECT_EQ(pasted_kernel(trace, 1), "gemm(a, b)");
  EXPECT_EQ(trace.kernels[1].threads, 1024u);
}

TEST(Pasted, JsonOfRocprof) {
  const Trace trace = read_pasted(R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 7},
    "agents": [{"type": 1, "product_name": "EPYC"}, {"type": 2, "product_name": "MI300X"}],
    "buffer_records": {"hip_api": [{"kind": 1}], "kernel_dispatch": [
      {"size": 1, "start_timestamp": 5000, "end_timestamp": 9000, "dispatch_info":
        {"kernel_id": 4, "workgroup_size": {"x": 64, "y": 1, "z": 1},
         "grid_size": {"x": 256, "y": 2, "z": 1}}},
      {"start_timestamp": 1000, "end_timestamp": 2500, "dispatch_info": {"kernel_id": 99}}]},
    "kernel_symbols": [{"size": 1, "kernel_id": 4, "kernel_name": "_Z1f.kd",
      "formatted_kernel_name": "Cijk_Alik_Bljk_I8I_MT128x128"}]}]})");
  EXPECT_EQ(trace.format, "rocprofv3 JSON");
  EXPECT_EQ(trace.device, "MI300X");
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_EQ(pasted_kernel(trace, 0), "?");
  EXPECT_EQ(trace.kernels[0].us, 1.5);
  EXPECT_EQ(pasted_kernel(trace, 1), "Cijk_Alik_Bljk_I8I_MT128x128");
  EXPECT_EQ(trace.kernels[1].us, 4);
  EXPECT_EQ(trace.kernels[1].threads, 512u);
  EXPECT_ERROR_WITH(read_pasted(R"({"rocprofiler-sdk-tool": []})"), "without kernels");
}

TEST(Pasted, CsvOfRocprof) {
  const Trace trace = read_pasted(
      "\"Kind\",\"Agent_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\","
      "\"Workgroup_Size_X\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
      "\"KERNEL_DISPATCH\",4,\"void f<(int)2, true>(char*)\",2000,5000,64,128,2,1\n");
  EXPECT_TRUE(trace.has_order);
  EXPECT_EQ(pasted_kernel(trace, 0), "void f<(int)2, true>(char*)");
  EXPECT_EQ(trace.kernels[0].us, 3);
  EXPECT_EQ(trace.kernels[0].threads, 256u);
  const Trace sums = read_pasted(
      "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n"
      "\"Cijk_Ailk, _B\",7,14000,2000.0,100.0\n");
  EXPECT_FALSE(sums.has_order);
  EXPECT_EQ(sums.kernels.at(0).calls, 7);
  EXPECT_EQ(sums.kernels.at(0).us, 14);
}

TEST(Pasted, LayersOfTensorRt) {
  const Trace trace = read_pasted(R"({"Layers": [
    {"Name": "/blocks.0/qkv/MatMul", "LayerType": "gemm", "Inputs": [
       {"Name": "x", "Location": "Device", "Dimensions": [1, 4096, 4608],
        "Format/Datatype": "Row major Int8 format"}],
     "Outputs": [{"Name": "y", "Dimensions": [1, 4096, 13824], "Format/Datatype": "Half"}],
     "Weights": {"Type": "Int8", "Count": 63700992},
     "TacticName": "sm80_xmma_gemm_i8f16_i8i32_f32_tn_n", "Metadata": "[ONNX Layer: a]"},
    {"Name": "r", "LayerType": "Reformat", "Inputs": [], "Metadata": ""}],
    "Bindings": ["x", "y"]})");
  EXPECT_EQ(trace.format, "TensorRT engine");
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_EQ(pasted_kernel(trace, 0), "sm80_xmma_gemm_i8f16_i8i32_f32_tn_n");
  const Op& layer = trace.ops.at(trace.kernels[0].op);
  EXPECT_TRUE(layer.is_range);
  EXPECT_EQ(trace.names.at(layer.name), "/blocks.0/qkv/MatMul");
  const Operand& input = trace.signatures.at(layer.signature).at(0);
  EXPECT_EQ(input.type, ScalarType::int8);
  EXPECT_EQ(input.dims, (std::vector<int64_t>{1, 4096, 4608}));
  EXPECT_ERROR_WITH(read_pasted(R"({"Layers": ["a + b", "c"], "Bindings": ["x"]})"),
                    "--profilingVerbosity=detailed");
  EXPECT_ERROR_WITH(
      read_pasted(R"([{"count": 10}, {"name": "a", "timeMs": 1.5, "averageMs": 0.1}])"),
      "--exportLayerInfo");
}

// Its lines among others, in the styles of two versions; what was only created did not run.
TEST(Pasted, VerboseLinesOfOneDnn) {
  const Trace trace = read_pasted(
      "Loading the model\n"
      "onednn_verbose,v1,info,oneDNN v3.7.1 (commit 8d263e6)\n"
      "onednn_verbose,v1,primitive,create:cache_miss,cpu,matmul,brg_matmul:avx512_core_amx,undef,"
      "src:u8::blocked:ab::f0 wei:s8:a:any:any::f0 dst:f32::blocked:ab::f0,,,8x64:64x32,0.5\n"
      "onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core_amx,undef,"
      "src:u8::blocked:ab::f0 wei:s8:a:blocked:BA16a64b4a::f0 dst:f32::blocked:ab::f0,"
      "attr-scales:src0:0:f32+wei:2:f32,,8x64:64x32,0.25\n"
      "dnnl_verbose,1693533460193.34,exec,cpu,inner_product,gemm:jit,forward_inference,"
      "src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 bia_undef::undef::f0 dst_f32::blocked:ab:f0,,,"
      "mb8ic64oc32,0.5\n"
      "onednn_verbose,primitive,exec,cpu,reorder,jit:uni,undef,src_s8::blocked:ab::f0 "
      "dst_bf16::blocked:ab::f0,,,32x64,0.125\n");
  EXPECT_EQ(trace.format, "oneDNN verbose lines");
  ASSERT_EQ(trace.ops.size(), 3u);
  const auto operands = [&](size_t op) { return trace.signatures.at(trace.ops[op].signature); };
  EXPECT_EQ(trace.names.at(trace.ops[0].name), "onednn::matmul u8:s8:f32");
  EXPECT_FLOAT_EQ(trace.ops[0].us, 250);
  EXPECT_EQ(operands(0), (Signature{{ScalarType::uint8, {8, 64}}, {ScalarType::int8, {64, 32}}}));
  EXPECT_EQ(trace.names.at(trace.ops[1].name), "onednn::inner_product f32:f32:f32");
  EXPECT_EQ(operands(1), (Signature{{ScalarType::f32, {8, 64}}, {ScalarType::f32, {32, 64}}}));
  EXPECT_EQ(operands(2), (Signature{{ScalarType::bf16, {32, 64}}, {ScalarType::int8, {32, 64}}}));
}

// The first fence that holds JSON of a profiler, not the first that holds JSON.
TEST(Pasted, JsonBetweenFences) {
  const std::string event =
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2})";
  const Trace trace =
      read_pasted("My settings:\n```json\n{\"steps\": 4}\n```\nThe trace:\n```\n" +
                  std::string(R"({"traceEvents": [)") + event + "]}\n```\nThanks!\n");
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.names.at(trace.ops[0].name), "aten::mm");
  EXPECT_ERROR_WITH(read_pasted("A bug:\n```json\n{\"steps\": 4}\n```\n"), "none of the files");
}

// A row of an op with the same calls and time tells what a name that was cut short has lost; two
// such ops tell nothing.
TEST(Pasted, OpsTellShortenedNames) {
  const std::string dashes = "----------------------------  ----------  ----------  ----------\n";
  const std::string head = "                        Name    Self CPU   Self CUDA  # of Calls\n";
  const std::string kernel = "void cutlass::device_kern...     0.000us     1.500ms         204\n";
  const std::string op = "        flashinfer::fp4_gemm   257.550us     1.500ms         204\n";
  const std::string other = "                 mylib::gemm   257.550us     1.500ms         204\n";
  const Trace told = read_pasted(dashes + head + dashes + op + kernel + dashes);
  ASSERT_EQ(told.kernels.size(), 1u);
  ASSERT_NE(told.kernels[0].op, kNone);
  EXPECT_EQ(told.names.at(told.ops.at(told.kernels[0].op).name), "flashinfer::fp4_gemm");
  const Trace open = read_pasted(dashes + head + dashes + op + other + kernel + dashes);
  EXPECT_EQ(open.kernels.at(0).op, kNone);
}

TEST(Pasted, CutAnywhereTheyAreReadOrRefused) {
  for (const std::string whole : {kCudaTable, kNsysText}) {
    for (size_t length = 1; length < whole.size(); length += 37) {
      try {
        read_pasted(std::string_view(whole).substr(0, length));
      } catch (const octet::Error&) {
      }
    }
  }
}
