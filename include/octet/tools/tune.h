// Chooses kernels for a device by measuring them, ahead of time.
//
//   octet::TuneRequest request;
//   request.shapes = octet::parse_shapes("ideogram4@768,1024,2048");
//   octet::TuneReport report = octet::tune_gemm(request);  // fills the device's plan file
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/model_options.h"
#include "octet/tools/shapes.h"

namespace octet {

struct TuneRequest {
  std::vector<GemmShape> shapes;
  std::string device = "auto";    // auto, ref, cpu, cuda[:i]
  int threads = 0;                // 0: one per physical core
  Tuning mode = Tuning::missing;  // or all; off is an Error
};

// One problem with its plan. Times are medians, 0 if never measured.
struct TuneRow {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  std::string out;     // "BF16"
  std::string fusion;  // none, swiglu
  std::string kernel;
  std::string source;  // only, forced, estimate, predicted, shipped, file, tuned
  std::string date;    // of the measurement
  double us = 0;
  bool under_load = false;  // all times are from runs without pause, else from single runs
  double tops = 0;
  std::string runner_up;  // empty if there was no other
  double runner_up_us = 0;
  double unquantized_us = 0;  // the same product in bf16
  double quantize_us = 0;     // quantizing its activations
  std::string faster;         // int8 when us + quantize_us < unquantized_us, else bf16; or empty
};

struct TuneReport {
  std::string device;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // of the build
  Tuning mode = Tuning::missing;
  bool has_choice = false;  // false: the device has one kernel for everything, or is_forced
  bool is_forced = false;   // OCTET_FORCE_KERNEL names the kernel
  std::string plan_file;    // where the plans are stored; empty if they are not
  std::vector<TuneRow> rows;
};

// For each shape the plain GEMM, for gate_up shapes also the one with a fused SwiGLU; bf16 outputs,
// each problem once. progress(done, total) is called when the device is ready and after each
// problem, but not if there is nothing to measure. A warning is logged if there is a choice but no
// file to store it in. Throws Error if not a single problem could be measured.
OCTET_API TuneReport tune_gemm(const TuneRequest& request,
                               const std::function<void(int, int)>& progress = {});

}  // namespace octet
