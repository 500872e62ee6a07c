// Measuring INT8 linears.
//
//   octet::GemmBenchRequest request;
//   request.shapes = octet::parse_shapes("512,4608,4608;ideogram4@1024");
//   octet::GemmBench bench = octet::bench_gemm(request);
//   std::cout << bench.rows[0].kernel << " " << bench.rows[0].us << " us\n";
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace octet {

struct GemmShape {
  int64_t m = 0;  // tokens
  int64_t n = 0;  // output channels
  int64_t k = 0;  // input channels
};

// Items separated by ';', each either "m,n,k" or "ideogram4@<pixels>[,<pixels>...]", the linears of
// one unconditional forward pass at that image size. Throws Error naming the item that is wrong.
std::vector<GemmShape> parse_shapes(const std::string& text);

struct GemmBenchRequest {
  std::vector<GemmShape> shapes;
  std::string device = "auto";  // auto, ref, cpu, cuda[:i]
  int threads = 0;              // 0: one per physical core
  std::string dtype = "bf16";   // of activations in and out, and of the unquantized path: bf16, f32
  double seconds = 1.0;         // per shape, at least; every path runs at least 7 times
  // Also the unquantized and the fake INT8 path.
  bool compare = true;
};

struct GemmBenchRow {
  GemmShape shape;
  std::string kernel;         // that ran
  double us = 0;              // median of the GEMM alone
  double quantize_us = 0;     // median of quantizing the activations
  double linear_us = 0;       // median of both, run one after the other
  double tops = 0;            // of the GEMM alone, 10^12 operations per second
  double ceiling_tops = 0;    // of the multiply instruction on registers alone, median
  double ceiling_share = 0;   // tops / ceiling_tops
  double unquantized_us = 0;  // 0 when not measured
  double fake_int8_us = 0;

  // How many times as long the other path takes as our whole linear, quantization included.
  double ratio_unquantized() const { return linear_us > 0 ? unquantized_us / linear_us : 0; }
  double ratio_fake_int8() const { return linear_us > 0 ? fake_int8_us / linear_us : 0; }
};

struct GemmBench {
  std::string device;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // of the build
  std::string dtype;
  int threads = 0;
  std::vector<GemmBenchRow> rows;
};

// progress(done, total) is called once the device is ready, and after each shape.
GemmBench bench_gemm(const GemmBenchRequest& request,
                     const std::function<void(int, int)>& progress = {});

// One DiT-sized linear, three ways, with the error of each against the exact product.
struct LinearPath {
  std::string name;  // "unquantized bf16", "fake INT8", "native INT8"
  std::string how;   // in words
  double us = 0;
  double relative_error = 0;  // L2 norm of the error over L2 norm of the result
};

struct LinearDemo {
  std::string device;
  std::string kernel;
  GemmShape shape;
  std::vector<LinearPath> paths;
};

LinearDemo demo_linear(const std::string& device = "auto", int threads = 0);

}  // namespace octet
