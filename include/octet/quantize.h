// Makes INT8 checkpoints from checkpoints in any dialect.
//
//   octet::QuantizeRequest request;
//   request.source = "ideogram-4-fp8";
//   request.out = "ideogram-4-int8";
//   request.recipe = "convrot";
//   const octet::QuantizeReport report = octet::quantize(request, nullptr);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct QuantizeRequest {
  // A model's folder as Hugging Face lays it out (both transformers are quantized), or one
  // transformer: its folder or file.
  std::string source;
  std::string base;  // gives what `source` lacks
  // A folder for a model's folder; else a .safetensors file. Empty: errors are measured, no more.
  std::string out;
  bool unconditional = false;         // a single transformer is the unconditional one
  std::string recipe = "convrot";     // rowwise, smoothquant[:alpha], convrot[:group]
  std::string protect = "none";       // none, auto:N, or names of linears, with *
  bool clip = true;                   // scales of weights are searched for the smallest error
  std::string dialect = "comfyui";    // or transformerlab
  std::string statistics;             // file with activations, read, or written by calibration
  std::vector<std::string> captions;  // files to calibrate with; none: no calibration
  bool any_caption = false;           // warn of their errors, and run them all the same
  int calibration_steps = 0;          // 0: those of the preset turbo
  std::string calibration_size = "512x512";
  uint64_t seed = 0;
  uint64_t max_memory = 0;  // bytes, 0: as much as is useful
  bool measure = false;     // errors of all large linears
  bool verify = false;      // the output is read back and compared
  std::string device = "auto";
  int threads = 0;
};

// The file for what is seen in calibration: `statistics`, else beside `out`; empty without both.
OCTET_API std::string statistics_path(const QuantizeRequest& request);

struct QuantizeStep {
  std::string stage;   // "calibrate", "measure", "write", "verify"
  std::string branch;  // that is worked on, where each is on its own
  std::string unit;    // "steps", "bytes"
  int64_t done = 0, total = 0;
};
using OnQuantizeStep = std::function<bool(const QuantizeStep&)>;  // false ends the work

struct ErrorPlace {
  int64_t index = 0;
  double value = 0;
};

struct LinearErrorReport {
  std::string branch, module;
  int64_t n = 0, k = 0;
  // NRMSE of the output by each way; `unquantized` is BF16.
  double rowwise = 0, smoothquant = 0, convrot = 0, unquantized = 0;
  bool is_protected = false;
  std::vector<ErrorPlace> worst_rows;     // output channels: share of the squared error
  std::vector<ErrorPlace> worst_columns;  // input channels: reach over the median channel's
};

struct QuantizeBranchReport {
  std::string branch;                          // "conditional"
  int64_t int8 = 0, protected_ = 0, kept = 0;  // linears; the last are small ones
  std::vector<std::string> protected_modules;
};

struct QuantizeReport {
  std::string device, recipe;
  std::string activations;  // where the rows come from that errors were measured with
  std::vector<std::string> files;
  std::vector<QuantizeBranchReport> branches;
  std::vector<LinearErrorReport> errors;  // in the order of the model
  uint64_t source_bytes = 0, output_bytes = 0;
  uint64_t resumed_tensors = 0;  // finished by an earlier run
  bool verified = false;         // read back and compared
  double seconds = 0;            // of writing
};

// Throws Error with one sentence. What is finished of an output is gone on with by the next call
// with the same request.
OCTET_API QuantizeReport quantize(const QuantizeRequest& request, const OnQuantizeStep& on_step);

// A linear's error by the recipe of the report.
OCTET_API double error_by_recipe(const QuantizeReport& report, const LinearErrorReport& error);

// The errors as a page to look at: bars, sorted by the error of the recipe.
OCTET_API std::string error_page(const QuantizeReport& report);

}  // namespace octet
