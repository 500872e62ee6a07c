// From a checkpoint in any dialect to one in INT8.
//
// Nothing but a few rows of the source is in memory at a time. The output is laid out at once and
// filled module by module; what is finished survives the program (formats/resumable_safetensors.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "models/ideogram4/dit_source.h"
#include "quant/activations.h"
#include "quant/linear_error.h"
#include "quant/recipe.h"
#include "weights/dialects/output_dialect.h"

namespace octet::convert {

struct QuantizeBranch {
  ideogram4::DitFiles files;
  bool conditional = true;
};

struct QuantizeOptions {
  quant::Recipe recipe;
  quant::Protection protection;
  bool clip = true;
  weights::OutputDialect dialect = weights::OutputDialect::comfyui;
  bool measure = false;     // the errors of all large linears, also where nothing depends on them
  uint64_t max_memory = 0;  // bytes, 0: as much as is useful
  // By branch and linear; without any, errors are measured on synthetic rows.
  quant::ActivationStatistics statistics;
  std::string statistics_name;  // where they come from, for the record; empty: synthetic
};

struct QuantizeProgress {
  const char* stage = "";        // "measure", "write", "verify"
  uint64_t done = 0, total = 0;  // bytes of the source; of the output when verifying
};
using OnQuantize = std::function<bool(const QuantizeProgress&)>;  // false ends the work

struct QuantizedBranch {
  bool conditional = true;
  int64_t int8 = 0, protected_ = 0, kept = 0;  // linears, the last ones small
  std::vector<std::string> protected_modules;
  std::vector<quant::LinearError> errors;  // where they were measured, in the order of the model
};

struct QuantizeReport {
  std::vector<std::string> files;
  std::vector<QuantizedBranch> branches;
  uint64_t source_bytes = 0, output_bytes = 0;
  uint64_t resumed_tensors = 0;  // that an earlier run had finished
  double seconds = 0;
};

// Memory that is taken whatever the bound: a smaller one is refused.
inline constexpr uint64_t kLeastQuantizeMemory = 24'000'000;

// Throws Error for what quantize() refuses before it computes anything: a recipe that the dialect
// cannot say, a source in INT8, names of linears that are none, too little memory, statistics of
// another model. `calibrates`: statistics are made later, which is better known to be of use.
void check_quantizable(const std::vector<QuantizeBranch>& branches, const QuantizeOptions& options,
                       bool calibrates);

// Writes one file with the given branches: one of them in the ComfyUI dialect. An empty `path`
// measures alone.
QuantizeReport quantize(Backend& backend, ThreadPool& pool,
                        const std::vector<QuantizeBranch>& branches, const std::string& path,
                        const QuantizeOptions& options, const OnQuantize& on_progress);

// Reads a file that quantize() wrote and compares it with its source: what is not quantized is
// equal, and each value in INT8 within its step (for clipped rows, within the search's limit).
// Throws Error with the first that is not.
void verify(ThreadPool& pool, const std::vector<QuantizeBranch>& branches, const std::string& path,
            const QuantizeOptions& options, const OnQuantize& on_progress);

}  // namespace octet::convert
