#include <fmt/format.h>
#include <gtest/gtest.h>

#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "formats/error_message.h"

using namespace octet::audit;  // NOLINT: tests

namespace {

using octet::ByteStream;
using octet::test::contains;
using octet::test::error_of;

Trace chrome_trace(std::string_view text) {
  ByteStream bytes(text, "test");
  return read_chrome_trace(bytes);
}

std::string event(std::string_view category, std::string_view name, double ts, double us,
                  std::string_view args, std::string_view thread = "1") {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":9,"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
      category, name, thread, ts, us, args);
}

template <class... Events>
std::string events(const Events&... all) {
  std::string text;
  ((text += (text.empty() ? "" : ",") + all), ...);
  return "{\"traceEvents\":[" + text + "]}";
}

const std::string& name_of_op(const Trace& trace, uint32_t op) {
  static const std::string none = "none";
  return op == kNone ? none : trace.names.at(trace.ops.at(op).name);
}

const std::string& kernel_op(const Trace& trace, size_t kernel) {
  return name_of_op(trace, trace.kernels.at(kernel).op);
}

}  // namespace

TEST(ChromeTrace, ReadsOpsKernelsAndTheirShapes) {
  const std::string text =
      R"({"schemaVersion":1,
      "deviceProperties":[{"id":1,"name":"NVIDIA A"},{"id":0,"name":"NVIDIA H200"}],
      "traceEvents":[
      {"ph":"M","name":"process_name","pid":9,"tid":0,"args":{"name":"python"}},
      {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":100.5,"dur":20,"args":{
       "External id":12,"Concrete Inputs":["",""],
       "Input type":["c10::BFloat16","signed char","Scalar",""],
       "Input Dims":[[4096,4608],[4608,13824],[],[[1,2],[3]]]}},
      {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":"150.25","dur":55.5,"args":{
       "External id":12,"device":0,"stream":7,"correlation":77,"grid":[2,66,1],"block":[384,1,1]}},
      {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":90,"dur":5,"args":{}},
      {"ph":"X","cat":"gpu_user_annotation","name":"step","pid":0,"tid":7,"ts":90,"dur":5000},
      {"ph":"X","cat":"python_function","name":"a.py(1): f","pid":9,"tid":9,"ts":90,"dur":5000},
      {"ph":"s","id":77,"pid":9,"tid":9,"ts":101,"cat":"ac2g","name":"ac2g"},
      {"ph":"f","id":77,"pid":0,"tid":7,"ts":150,"cat":"ac2g","name":"ac2g","bp":"e"}],
      "traceName":"x"})";
  const Trace trace = chrome_trace(text);
  EXPECT_EQ(trace.device, "NVIDIA H200");
  EXPECT_EQ(trace.format, "PyTorch profiler trace");
  EXPECT_TRUE(trace.has_shapes && trace.has_order);
  ASSERT_EQ(trace.ops.size(), 1u);
  const Op& op = trace.ops[0];
  EXPECT_EQ(trace.names[op.name], "aten::mm");
  EXPECT_EQ(op.start_us, 100.5);
  EXPECT_EQ(op.us, 20);
  const Signature want = {{ScalarType::bf16, {4096, 4608}},
                          {ScalarType::int8, {4608, 13824}},
                          {ScalarType::other, {}},
                          {ScalarType::unknown, {}}};
  EXPECT_EQ(trace.signatures.at(op.signature), want);
  ASSERT_EQ(trace.kernels.size(), 2u);  // by start
  EXPECT_TRUE(trace.kernels[0].is_transfer);
  const Kernel& kernel = trace.kernels[1];
  EXPECT_EQ(trace.names[kernel.name], "gemm");
  EXPECT_EQ(kernel.start_us, 150.25);
  EXPECT_EQ(kernel.us, 55.5);
  EXPECT_EQ(kernel.threads, 2u * 66 * 384);
  EXPECT_EQ(kernel.op, 0u);
}

TEST(ChromeTrace, OrderOfKeysAndVersionsDoNotMatter) {
  // A bare array, arguments first, words of PyTorch 1.8.
  const Trace trace = chrome_trace(
      R"([{"args":{"external id":5,"Input dims":[[2,3]],"Input type":["float"]},"dur":4,"ts":1,
           "tid":"main","pid":"p","name":"aten::add","cat":"Operator","ph":"X"},
          {"args":{"External Id":5},"name":"k","tid":"stream 7","ts":3,"dur":1,"ph":"X","pid":0,
           "cat":"Kernel"}])");
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.signatures.at(0), (Signature{{ScalarType::f32, {2, 3}}}));
  EXPECT_EQ(kernel_op(trace, 0), "aten::add");
}

TEST(ChromeTrace, NestsOpsOfEachThread) {
  const Trace trace = chrome_trace(
      events(event("cpu_op", "inner", 30, 20, R"("External id":3)"),
             event("cpu_op", "outer", 10, 60, R"("External id":1)"),
             event("user_annotation", "layer", 20, 40, R"("External id":2)"),
             event("cpu_op", "innermost", 30, 5, ""), event("cpu_op", "next", 70, 5, ""),
             event("cpu_op", "elsewhere", 31, 3, "", "2")));
  const auto& ops = trace.ops;
  ASSERT_EQ(ops.size(), 6u);
  const auto find = [&](std::string_view name) {
    for (const Op& op : ops) {
      if (trace.names[op.name] == name) return op;
    }
    return Op{};
  };
  EXPECT_EQ(name_of_op(trace, find("layer").parent), "outer");
  EXPECT_EQ(name_of_op(trace, find("inner").parent), "layer");
  EXPECT_EQ(name_of_op(trace, find("innermost").parent), "inner");
  EXPECT_EQ(name_of_op(trace, find("next").parent), "none");
  EXPECT_EQ(name_of_op(trace, find("elsewhere").parent), "none");
  EXPECT_TRUE(find("layer").is_range);
  // The range takes nothing from `outer`, the op inside of it does.
  EXPECT_EQ(find("outer").self_us, 40);
  EXPECT_EQ(find("layer").self_us, 20);
  EXPECT_EQ(find("inner").self_us, 15);
  for (uint32_t i = 0; i < ops.size(); ++i) {
    EXPECT_TRUE(ops[i].parent == kNone || ops[i].parent < i) << i;
  }
}

TEST(ChromeTrace, ModulesAreRanges) {
  const Trace trace =
      chrome_trace(events(event("python_function", "nn.Module: Linear_3", 1, 9, ""),
                          event("python_function", "linear.py(12): forward", 2, 8, ""),
                          event("cpu_op", "aten::linear", 3, 5, "")));
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(name_of_op(trace, trace.ops[1].parent), "nn.Module: Linear_3");
}

TEST(ChromeTrace, LinksKernelsToTheInnermostOp) {
  const Trace trace = chrome_trace(
      events(event("cpu_op", "outer", 10, 60, R"("External id":4)"),
             event("cpu_op", "inner", 20, 20, R"("External id":4)"),
             event("user_annotation", "range", 5, 90, R"("External id":4)"),
             event("user_annotation", "only a range", 5, 90, R"("External id":6)"),
             event("kernel", "by id", 100, 1, R"("External id":4)"),
             event("cuda_runtime", "cudaLaunchKernel", 25, 3, R"("External id":4,"correlation":8)"),
             event("kernel", "by correlation", 101, 1, R"("correlation":8)"),
             event("cuda_runtime", "cudaLaunchKernel", 50, 3, R"("correlation":9)"),
             event("kernel", "by time of the launch", 102, 1, R"("External id":0,"correlation":9)"),
             event("kernel", "of a range", 103, 1, R"("External id":6)"),
             event("kernel", "of nobody", 104, 1, R"("External id":7,"correlation":99)")));
  ASSERT_EQ(trace.kernels.size(), 5u);
  EXPECT_EQ(kernel_op(trace, 0), "inner");
  EXPECT_EQ(kernel_op(trace, 1), "inner");
  EXPECT_EQ(kernel_op(trace, 2), "outer");
  EXPECT_EQ(kernel_op(trace, 3), "only a range");
  EXPECT_EQ(kernel_op(trace, 4), "none");
}

TEST(ChromeTrace, TimesThatAreNoneAreHandled) {
  const Trace trace = chrome_trace(
      R"([{"ph":"X","cat":"kernel","name":"negative","ts":1,"dur":-5},
          {"ph":"X","cat":"kernel","name":"no number","ts":2,"dur":NaN},
          {"ph":"X","cat":"kernel","name":"endless","ts":3,"dur":1e999},
          {"ph":"X","cat":"kernel","name":"nowhere","ts":1e999,"dur":1},
          {"ph":"X","cat":"kernel","name":"never","ts":null,"dur":1},
          {"ph":"X","cat":"kernel","name":"missing"},
          {"ph":"X","cat":"cpu_op","name":"op","ts":1,"dur":1e300,
           "args":{"Input Dims":[[-1],[1e30],["x"],7],"Input type":[[],{},null]}},
          {"ph":"X","cat":"kernel","name":"twice","name":"last","ts":4,"dur":1,"dur":2},
          {"ph":"X","cat":"kernel","name":"many","ts":5,"dur":1,
           "args":{"grid":[4294967295,4294967295,4294967295],"block":[1024]}},
          7, null, [], "text"])");
  std::vector<std::string> names;
  for (const Kernel& kernel : trace.kernels) names.push_back(trace.names[kernel.name]);
  EXPECT_EQ(names, (std::vector<std::string>{"negative", "no number", "endless", "last", "many"}));
  EXPECT_EQ(trace.kernels[0].us, 0);
  EXPECT_EQ(trace.kernels[1].us, 0);
  EXPECT_EQ(trace.kernels[2].us, 1e12);
  EXPECT_EQ(trace.kernels[3].us, 2);
  EXPECT_EQ(trace.kernels[4].threads, 0u);
  EXPECT_FALSE(trace.has_shapes);
}

TEST(ChromeTrace, EveryCutIsToldAsOne) {
  const std::string text =
      events(event("cpu_op", "aten::mm", 1, 2, R"("External id":1,"Input Dims":[[1,2]])"),
             event("kernel", "k\\u00e9", 3, 4, R"("grid":[1,1,1])"));
  EXPECT_NO_THROW(chrome_trace(text));
  for (size_t length = 1; length < text.size(); ++length) {
    const std::string part = text.substr(0, length);
    const std::string message = error_of([&] { chrome_trace(part); });
    ASSERT_TRUE(contains(message, fmt::format("is cut off at byte {}", length))) << message;
  }
}

TEST(ChromeTrace, NothingToTellIsAnError) {
  EXPECT_ERROR_WITH(chrome_trace("{}"), "without traceEvents");
  EXPECT_ERROR_WITH(chrome_trace("[]"), "nothing to tell");
  EXPECT_ERROR_WITH(chrome_trace(R"({"traceEvents":{}})"), "without traceEvents");
  EXPECT_ERROR_WITH(chrome_trace(R"({"traceEvents":[{"ph":"X","name":"fusion","ts":1,"dur":2}]})"),
                    "test: is a trace without ops of PyTorch and without kernels");
}

TEST(ChromeTrace, NamesAreKeptOnceAndCut) {
  const std::string long_name(10'000, 'x');
  const Trace trace =
      chrome_trace(events(event("kernel", long_name, 1, 1, ""),
                          event("kernel", long_name, 2, 1, ""), event("kernel", "k", 3, 1, "")));
  ASSERT_EQ(trace.names.size(), 2u);
  EXPECT_EQ(trace.names[0], std::string(TraceTables::kMaxName, 'x'));
}

// Who made them to fill memory gets a sentence.
TEST(ChromeTrace, DifferentNamesHaveALimit) {
  std::string text = "[";
  for (int i = 0; i < 17'000; ++i) {
    text += fmt::format(R"({{"ph":"X","cat":"kernel","ts":1,"name":"{}{:4096}"}},)", i, 'x');
  }
  text += "0]";
  EXPECT_ERROR_WITH(chrome_trace(text), "more than 64 MB of different names");
}

// The time to nest and to link shall not grow with the square: this would take minutes.
TEST(ChromeTrace, DeepNestingAndEqualIdsTakeNoTime) {
  std::string text = "[";
  for (int i = 0; i < 60'000; ++i) {
    text += fmt::format(
        R"({{"ph":"X","cat":"cpu_op","name":"a","ts":{},"dur":{},"args":{{"External id":1}}}},)"
        R"({{"ph":"X","cat":"kernel","name":"k","ts":0,"dur":1,"args":{{"External id":1}}}},)",
        i, 200'000 - 2 * i);
  }
  const Trace trace = chrome_trace(text + "0]");
  EXPECT_EQ(trace.ops.size(), 60'000u);
  EXPECT_EQ(trace.kernels.size(), 60'000u);
}

TEST(ScalarTypes, AreKnownByTheNamesOfPrograms) {
  const std::pair<const char*, ScalarType> known[] = {
      {"signed char", ScalarType::int8},
      {"unsigned char", ScalarType::uint8},
      {"c10::BFloat16", ScalarType::bf16},
      {"c10::Half", ScalarType::f16},
      {"float", ScalarType::f32},
      {"double", ScalarType::f64},
      {"c10::Float8_e4m3fn", ScalarType::fp8},
      {"c10::Float8_e5m2fnuz", ScalarType::fp8},
      {"c10::Float4_e2m1fn_x2", ScalarType::fp4},
      {"torch.int8", ScalarType::int8},
      {"torch.uint8", ScalarType::uint8},
      {"torch.bfloat16", ScalarType::bf16},
      {"INT8", ScalarType::int8},
      {"__nv_bfloat16", ScalarType::bf16},
      {"__nv_fp8_e4m3", ScalarType::fp8},
      {"__half", ScalarType::f16},
      {"c10::qint8", ScalarType::int8},
      {"c10::quint8", ScalarType::uint8},
      {"int", ScalarType::int32},
      {"long int", ScalarType::int64},
      {"TensorList", ScalarType::other},
      {"", ScalarType::unknown},
      {"s8", ScalarType::int8},
      {"fp16", ScalarType::f16},
  };
  for (const auto& [text, type] : known) EXPECT_EQ(scalar_type_of(text), type) << text;
  EXPECT_EQ(name_of(ScalarType::int8), "int8");
  EXPECT_EQ(name_of(ScalarType::other), "other");
  EXPECT_EQ(scalar_type_of(std::string(1'000'000, 'i')), ScalarType::other);
}
