// Every format but traces of PyTorch and SQLite: chosen by content, read, refused.
#include <gtest/gtest.h>

#include <string>

#include "audit/patterns.h"
#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/error.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"

using namespace octet::audit;  // NOLINT: tests
using octet::ByteStream;
using octet::test::contains;
using octet::test::error_of;
using octet::test::TemporaryFolder;

namespace {

Trace read_text(std::string_view text) {
  ByteStream bytes(text, "test");
  return read_stream(bytes);
}

// A row as Nsight Compute writes it.
std::string quoted(const std::vector<std::string>& cells) {
  std::string row;
  for (const std::string& cell : cells) row += (row.empty() ? "\"" : ",\"") + cell + "\"";
  return row + "\n";
}

const std::string& kernel_name(const Trace& trace, size_t kernel) {
  return trace.names.at(trace.kernels.at(kernel).name);
}

}  // namespace

TEST(Readers, NsightComputeDetails) {
  const std::string gemm = "void gemm<(int)2, true>(char*)";
  const auto row = [&](const char* id, const char* metric, const char* unit, const char* value) {
    return quoted({id, "17", "python3", "127.0.0.1", gemm, "1", "7", "(128, 1, 1)", "(66, 2, 1)",
                   "0", "9.0", "Section", metric, unit, value});
  };
  const Trace trace = read_text(
      "==PROF== Connected to process 17 (/usr/bin/python3)\n"
      "step 1, loss 2, \"odd\n"
      "==PROF== Profiling \"gemm\" - 0: 0%....100% - 10 passes\n" +
      quoted({"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
              "Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name",
              "Metric Unit", "Metric Value"}) +
      row("0", "Duration", "nsecond", "12,500") +
      row("0", "sm__inst_executed_pipe_tensor_op_imma.sum", "inst", "1,048,576") +
      row("0", "sm__inst_executed_pipe_tensor_op_hmma.sum", "inst", "0") +
      row("1", "Duration", "usecond", "3.5") + row("2", "Registers", "", "n/a"));
  EXPECT_EQ(trace.format, "Nsight Compute CSV");
  EXPECT_TRUE(trace.has_order);
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(kernel_name(trace, 0), gemm);
  EXPECT_DOUBLE_EQ(trace.kernels[0].us, 12.5);
  EXPECT_EQ(trace.kernels[0].threads, 128u * 132);
  EXPECT_EQ(trace.kernels[0].int8_instructions, 1048576);
  EXPECT_EQ(trace.kernels[0].half_instructions, 0);
  EXPECT_EQ(trace.kernels[0].fp8_instructions, -1);
  EXPECT_EQ(trace.kernels[1].us, 3.5);
  EXPECT_EQ(trace.kernels[1].int8_instructions, -1);
  EXPECT_EQ(trace.kernels[2].us, 0);
}

TEST(Readers, NsightComputeRawPage) {
  const Trace trace = read_text(
      quoted({"ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC",
              "device__attribute_display_name", "gpu__time_duration.sum",
              "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
              "sm__ops_path_tensor_src_fp16_dst_fp32.sum", "sm__ops_path_tensor_src_int8.sum",
              "sm__ops_path_tensor_src_int8_sparsity_on.sum"}) +
      quoted({"", "", "", "", "", "", "", "", "", "ms", "", "", "", ""}) +
      quoted({"0", "a", "1", "7", "(128, 1, 1)", "(66, 2, 1)", "0", "9.0", "NVIDIA H200", "0.5",
              "5,000", "20", "0", "7"}) +
      quoted({"1", "b", "1", "7", "(128, 1, 1)", "(66, 2, 1)", "0", "9.0", "NVIDIA H200", "1.5",
              "0", "0", "77", "7"}));
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_EQ(trace.device, "NVIDIA H200");
  EXPECT_EQ(trace.kernels[0].us, 500);
  EXPECT_EQ(trace.kernels[0].half_instructions, 5020);
  EXPECT_EQ(trace.kernels[0].int8_instructions, 0);
  EXPECT_EQ(trace.kernels[1].int8_instructions, 77);
}

TEST(Readers, NsightComputeSummary) {
  const Trace trace = read_text(
      quoted({"Process ID", "Kernel Name", "Block Size", "Grid Size", "Invocations", "Section Name",
              "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"}) +
      quoted(
          {"17", "a", "(128, 1, 1)", "(66, 2, 1)", "4", "S", "Duration", "us", "1", "3", "2.5"}));
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(trace.kernels[0].calls, 4);
  EXPECT_EQ(trace.kernels[0].us, 10);
}

// As `nsys stats --format csv` prints one report after the other.
TEST(Readers, NsightSystemsSums) {
  const Trace trace = read_text(
      "Generating SQLite file r.sqlite from r.nsys-rep\n"
      "Processing [r.sqlite] with [/opt/reports/cuda_api_sum.py]...\n\n"
      "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
      "99.0,900000,30,1,1,1,1,1,cudaLaunchKernel\n\n"
      "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
      "60.0,6000,3,2000.0,2000.0,2000,2000,0.0,\"void f<(t)21, 72>(char const*, int)\"\r\n"
      "40.0,4000,1,4000.0,4000.0,4000,4000,0.0,gemm_s8\r\n\n"
      "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation\n"
      "100.0,500,2,250,250,250,250,0,[CUDA memcpy Host-to-Device]\n\n"
      "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n"
      "402.653,48,8.389,8.389,8.389,8.389,0.000,[CUDA memcpy Host-to-Device]\n\n"
      "Time (%),Total Time (ns),Instances,Avg (ns),GridXYZ,BlockXYZ,Name\n"
      "60.0,6000,3,2000.0,\"   2    1    1\",\" 128    1    1\",again\n");
  EXPECT_EQ(trace.format, "Nsight Systems CSV");
  EXPECT_FALSE(trace.has_order);
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(kernel_name(trace, 0), "void f<(t)21, 72>(char const*, int)");
  EXPECT_EQ(trace.kernels[0].us, 6);
  EXPECT_EQ(trace.kernels[0].calls, 3);
  EXPECT_EQ(kernel_name(trace, 1), "gemm_s8");
  EXPECT_TRUE(trace.kernels[2].is_transfer);
  EXPECT_EQ(trace.kernels[2].us, 0.5);
}

TEST(Readers, NsightSystemsSumsWithGridsAndOldNames) {
  const Trace grids = read_text(
      "Time (%),Total Time (us),Instances,GridXYZ,BlockXYZ,Name\n"
      "60.0,6,3,\"   2    3    1\",\" 128    1    1\",a\n");
  EXPECT_EQ(grids.kernels.at(0).us, 6);
  EXPECT_EQ(grids.kernels.at(0).threads, 768u);
  const Trace old = read_text(
      "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n"
      "100.0,2000,1,2000.0,2000,2000,a\n");
  EXPECT_EQ(old.kernels.at(0).us, 2);
}

TEST(Readers, NsightSystemsTrace) {
  const Trace trace = read_text(
      "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),"
      "DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
      "60000,443520,102,4,2,1,128,1,1,168,0.0,0.2,,,,,NVIDIA A100 (0),1,,7,\"gemm(a, b)\"\n"
      "1000,50240,101,,,,,,,,,,8.389,167.0,Pageable,Device,NVIDIA A100 (0),1,,7,"
      "[CUDA memcpy Host-to-Device]\n");
  EXPECT_TRUE(trace.has_order);
  EXPECT_EQ(trace.device, "NVIDIA A100");
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_TRUE(trace.kernels[0].is_transfer);
  EXPECT_EQ(kernel_name(trace, 1), "gemm(a, b)");
  EXPECT_EQ(trace.kernels[1].start_us, 60);
  EXPECT_EQ(trace.kernels[1].us, 443.52);
  EXPECT_EQ(trace.kernels[1].threads, 1024u);
}

TEST(Readers, ReportsOfGenerate) {
  const Trace trace = read_text(
      R"({"schema":"octet.generate/1","device":"NVIDIA H200","kernels":[
          {"layer":"attention.qkv","path":"int8","kernel":"wgmma","launches":34,"us":120.5,
           "tops":1},
          {"layer":"attention","path":"int8 scores","kernel":"flash_int8","launches":34,"us":9,
           "tops":1},
          {"layer":"mlp.down","path":"fake int8","kernel":null,"launches":4,"us":20,"tops":null}],
          "ops":[{"op":"gemm","calls":34,"us":120.5},{"op":"attention","calls":34,"us":50},
                 {"op":"norm","calls":3,"us":7},{"op":"rotary","calls":3,"us":2},
                 {"op":"residual","calls":3,"us":3}]})");
  EXPECT_EQ(trace.device, "NVIDIA H200");
  ASSERT_EQ(trace.reported.size(), 2u);
  EXPECT_EQ(trace.reported[0].layer, "attention.qkv");
  EXPECT_EQ(trace.reported[0].path, "int8");
  EXPECT_EQ(trace.reported[0].calls, 34);
  EXPECT_EQ(trace.reported[0].us, 120.5);
  EXPECT_EQ(trace.reported[1].path, "fake int8");
  const std::map<std::string, double> want = {{"attention", 50}, {"norm", 7}, {"elementwise", 5}};
  EXPECT_EQ(trace.reported_us, want);
}

TEST(Readers, OtherReports) {
  const Trace step = read_text(
      R"({"branches":[{"name":"conditional","kernels":[
           {"layer":"qkv","op":"gemm","kernel":"k","calls":3,"ms":2},
           {"layer":"head","op":"matmul","kernel":"m","calls":1,"ms":1}],
           "ops":[{"op":"quantize","calls":3,"ms":0.5}]}],
         "dtype":"bf16","linears":"int8","device":"d","schema" : "octet.bench.step/1"})");
  ASSERT_EQ(step.reported.size(), 2u);
  EXPECT_EQ(step.reported[0].path, "int8");
  EXPECT_EQ(step.reported[0].us, 2000);
  EXPECT_EQ(step.reported[1].path, "bf16");
  EXPECT_EQ(step.reported_us.at("quantize_activation"), 500);
  const Trace certified = read_text(
      R"({"schema":"octet.certify/1","checkpoint":{"device":"cpu","kernels":[
          {"layer":"qkv","path":"int8","kernel":"k","launches":3}]},"reference":{"kernels":[
          {"layer":"qkv","path":"bf16","kernel":"k","launches":3}]}})");
  ASSERT_EQ(certified.reported.size(), 1u);
  EXPECT_EQ(certified.reported[0].path, "int8");
  EXPECT_EQ(certified.device, "cpu");
  const Trace gemm = read_text(
      R"({"schema":"octet.bench.gemm/1",
          "rows":[{"m":1,"n":2,"k":3,"path":"int8","kernel":"k","us":5}]})");
  EXPECT_EQ(gemm.reported.at(0).layer, "1 x 2 x 3");
  EXPECT_ERROR_WITH(read_text(R"({"schema":"octet.pull/1"})"), "names no kernels");
  EXPECT_ERROR_WITH(read_text(R"({"schema":"octet.pull/1",)"), "test: invalid JSON");
}

TEST(Readers, AbsurdNumbersOfCallsAreCut) {
  const std::string most = "100000000000000000";
  const Trace table =
      read_text("Time (%),Total Time (ns),Instances,Name\n60.0,6000," + most + ",a\n");
  EXPECT_EQ(table.kernels.at(0).calls, TraceTables::kMaxCalls);
  const Trace report = read_text(
      R"({"schema":"octet.generate/1","kernels":[{"layer":"q","path":"int8","kernel":"k",
          "us":1,"launches":)" +
      most + "}]}");
  EXPECT_EQ(report.reported.at(0).calls, TraceTables::kMaxCalls);
}

TEST(Readers, LogsAreReadByTheirLines) {
  const LogRow& row = log_rows().front();
  const Trace trace =
      read_text("starting\n\x1b[1;32m" + row.example + "\x1b[0m\r\n\n" + row.example);
  ASSERT_EQ(trace.log.size(), 1u);
  EXPECT_EQ(trace.log[0].count, 2);
  EXPECT_EQ(trace.log[0].meaning, row.meaning);
  EXPECT_EQ(trace.log[0].verdict, row.verdict);
  EXPECT_EQ(trace.format, "log of " + row.program);
}

TEST(Readers, NamesAreUtf8) {
  const Trace trace = read_text("Time (%),Total Time (ns),Instances,Name\n60.0,6000,3,a\xff\n");
  EXPECT_EQ(kernel_name(trace, 0), "a\uFFFD");
}

TEST(Readers, WhatIsNothingIsRefusedWithOneSentence) {
  const std::pair<std::string, const char*> files[] = {
      {"", "test: is empty"},
      {std::string("\x7f"
                   "ELF\0\1\2",
                   7),
       "binary file of no known format"},
      {std::string("PK\x03\x04\0", 5), "ZIP archive"},
      {std::string("\xff\xfeI\0D\0", 6), "UTF-16"},
      {"hello\nworld\n", "none of the files that can be read"},
      {"\x80\x81\xfe", "none of the files that can be read"},
      {"a,b,c\n1,2,3\n", "none of the files that can be read"},
      {"[INFO] loading\n", "none of the files that can be read"},
      {"{", "is cut off at byte 1"},
      {"[{", "is cut off at byte 2"},
      {"{\"a\":1}", "without traceEvents"},
      {"==PROF== Connected\nno kernels were profiled\n", "table of Nsight Compute without kernels"},
      {"Time (%),Total Time (ns),Instances,Name\n", "table of Nsight Systems without kernels"},
      {std::string("SQLite format 3\0", 16), "SQLite"},
  };
  for (const auto& [text, part] : files) {
    const std::string message = error_of([&, &text = text] { read_text(text); });
    EXPECT_TRUE(contains(message, part)) << message;
    EXPECT_TRUE(message.starts_with("test: ") && message.find('\n') == message.npos) << message;
  }
  const TemporaryFolder folder;
  EXPECT_ERROR_WITH(read_trace(folder.path()), "is a folder");
  EXPECT_ERROR_WITH(read_trace(folder.file("none")), "cannot be opened");
}
