// Benchmarks of INT8 linears.
//
//   octet::GemmBenchRequest request;
//   request.shapes = octet::parse_shapes("512,4096,4096;ideogram4@1024");
//   octet::GemmBench bench = octet::bench_gemm(request);
//   std::cout << bench.rows[0].kernel << " " << bench.rows[0].us << " us\n";
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/model_options.h"
#include "octet/tools/shapes.h"
#include "octet/tools/steadiness.h"

namespace octet {

struct GemmBenchRequest {
  std::vector<GemmShape> shapes;
  std::string device = "auto";    // auto, ref, cpu, cuda[:i]
  int threads = 0;                // 0: one per physical core
  std::string dtype = "bf16";     // of activations, outputs and the unquantized path: bf16, f32
  double seconds = 1.0;           // per shape, at least; every path runs at least 7 times
  Tuning tune = Tuning::missing;  // which kernels are chosen by measuring first
  // int8, bf16 (the unquantized path), or auto: for each shape the faster one, by its plan or, if
  // that does not say, by measuring. bf16 and auto require the dtype bf16.
  std::string path = "int8";
  bool compare = true;  // also measure the unquantized and the fake INT8 path
  // Also measure other implementations of the INT8 GEMM that the device offers; a warning is logged
  // when there are none. Requires `compare`, and a path other than bf16.
  bool peers = false;
};

struct GemmPeerTime {
  std::string name;
  double us = 0;
};

struct GemmBenchRow {
  GemmShape shape;
  std::string path;        // measured: int8 or bf16
  std::string kernel;      // that ran
  std::string plan;        // source of the choice, as in TuneRow; empty for the path bf16
  double us = 0;           // median of the GEMM alone
  double quantize_us = 0;  // median of quantizing the activations; 0 for the path bf16
  double linear_us = 0;    // median of both, run in sequence
  double tops = 0;         // of the GEMM alone, 10^12 operations per second
  // Of the multiply instruction with its operands at hand, median; 0 for the path bf16 and on ref.
  double ceiling_tops = 0;
  double ceiling_share = 0;   // tops / ceiling_tops
  double unquantized_us = 0;  // 0 when not measured
  double fake_int8_us = 0;
  // GEMMs on operands that are already quantized, including the pass that dequantizes their sums; a
  // peer that does not support the shape is left out. None for the path bf16.
  std::vector<GemmPeerTime> peers;
  Steadiness steadiness;

  // The other path's time over that of our whole linear, quantization included.
  double ratio_unquantized() const { return linear_us > 0 ? unquantized_us / linear_us : 0; }
  double ratio_fake_int8() const { return linear_us > 0 ? fake_int8_us / linear_us : 0; }
  // The same for a GEMM and our GEMM alone.
  double ratio_to_gemm(double other_us) const { return us > 0 ? other_us / us : 0; }
};

struct GemmBench {
  std::string device;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // of the build
  std::string dtype;
  int threads = 0;
  std::vector<GemmBenchRow> rows;
};

// progress(done, total) is called when the device is ready and after each shape.
OCTET_API GemmBench bench_gemm(const GemmBenchRequest& request,
                               const std::function<void(int, int)>& progress = {});

struct QuantizeBenchRequest {
  int64_t rows = 4096;
  std::vector<int64_t> ks;  // none: those of the large linears of the first known family
  std::string device = "auto";
  int threads = 0;
  double seconds = 0.5;  // per k, at least
};

struct QuantizeBenchRow {
  int64_t rows = 0;
  int64_t k = 0;
  std::string transform;     // of the rows before they are quantized: none, smooth, rotate 256
  double us = 0;             // median
  double bytes = 0;          // read and written
  double copy_us = 0;        // of a copy that reads and writes as many bytes, interleaved
  double gb_per_s = 0;       // 10^9 bytes
  double copy_gb_per_s = 0;  // of the copy
  double share_of_copy = 0;  // speed of the quantization over that of the copy
  Steadiness steadiness;
};

struct QuantizeBench {
  std::string device;
  std::string date;
  std::string commit;
  std::string dtype;  // of what is quantized
  int threads = 0;
  std::vector<QuantizeBenchRow> rows;  // rotate 256 only for multiples of 256
};

OCTET_API QuantizeBench bench_quantize(const QuantizeBenchRequest& request,
                                       const std::function<void(int, int)>& progress = {});

// One DiT-sized linear on three paths, with the error of each against the exact product.
struct LinearPath {
  std::string name;  // "fake INT8", "unquantized", "native INT8"
  std::string how;   // in words
  double us = 0;
  double relative_error = 0;  // L2 norm of the error over L2 norm of the result
};

struct LinearRequest {
  GemmShape shape;  // m = 0: a shape that suits the device
  std::string device = "auto";
  int threads = 0;
  double seconds = 2.0;  // at least; every path runs at least 5 times
};

struct LinearComparison {
  std::string device;
  std::string kernel;
  GemmShape shape;
  std::vector<LinearPath> paths;
  Steadiness steadiness;
};

OCTET_API LinearComparison compare_linear(const LinearRequest& request = {},
                                          const std::function<void(int, int)>& progress = {});

}  // namespace octet
