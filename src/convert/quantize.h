// From a checkpoint in any dialect to one in INT8.
//
// Nothing but a few rows of the source is in memory at a time. The output is laid out at once and
// filled module by module; what is finished survives the program (formats/resumable_safetensors.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "models/family.h"
#include "octet/quantize.h"
#include "quant/activations.h"

namespace octet::convert {

using models::NetworkFiles;

struct QuantizeOptions {
  Recipe recipe;
  Protection protection;
  bool clip = true;
  OutputDialect dialect = OutputDialect::comfyui;
  bool measure = false;     // the errors of all large linears, even if nothing depends on them
  uint64_t max_memory = 0;  // bytes, 0: as much as is useful
  // By network and linear; without any, errors are measured on synthetic rows.
  quant::ActivationStatistics statistics;
  std::string statistics_name;  // where they come from, for the record; empty: synthetic
};

// Memory that is taken whatever the bound: a smaller one is refused.
inline constexpr uint64_t kLeastQuantizeMemory = 24'000'000;

// Throws Error for what quantize() refuses before it computes anything: a recipe that the dialect
// cannot say, a source in INT8, names of linears that are none, too little memory, statistics of
// another model. `calibrates`: statistics are made later, which is better known to be of use.
void check_quantizable(const models::Family& family, const std::vector<NetworkFiles>& networks,
                       const QuantizeOptions& options, bool calibrates);

// Writes one file with the given networks: one of them in the ComfyUI dialect. An empty `path`
// only measures. The report says nothing about the device, the recipe and the activations.
QuantizeReport quantize(Backend& backend, const models::Family& family,
                        const std::vector<NetworkFiles>& networks, const std::string& path,
                        const QuantizeOptions& options, const OnQuantizeStep& on_step);

// Reads a file that quantize() wrote and compares it with its source: what is not quantized is
// equal, and each value in INT8 within its step (for clipped rows, within the search's limit).
// Throws Error with the first that is not.
void verify(ThreadPool& pool, const models::Family& family,
            const std::vector<NetworkFiles>& networks, const std::string& path,
            const QuantizeOptions& options, const OnQuantizeStep& on_step);

}  // namespace octet::convert
