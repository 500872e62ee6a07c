// Benchmark of one denoising step of all networks. Needs no checkpoint: the weights are random, and
// the time does not depend on them.
//
//   octet::StepBenchRequest request;
//   request.text_tokens = 256;
//   octet::StepBench bench = octet::bench_step(request);
//   std::cout << bench.ms() << " ms per step\n";
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/engine.h"
#include "octet/export.h"
#include "octet/tools/bench.h"
#include "octet/tools/power_use.h"

namespace octet {

struct StepBenchRequest {
  int width = 1024, height = 1024;  // multiples of 16
  int64_t text_tokens = 512;        // 0 to 2048
  int64_t layers = 34;              // of each network; fewer to shorten it
  std::string device = "auto";      // auto, ref, cpu, cuda[:i]
  int threads = 0;                  // 0: one per physical core
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;  // the large ones
  AttentionMode attention = AttentionMode::automatic;
  Tuning tuning = Tuning::missing;
  int steps = 7;              // measured, 1 to 1000; the medians are reported
  bool require_int8 = false;  // Error if a large linear did not run in native INT8
  // Bytes of the device's memory, as ModelOptions::max_memory: layers that do not fit wait in host
  // memory and come while others run. 0: all stay. For devices with memory of their own.
  uint64_t max_memory = 0;
  std::string family = "ideogram4";
};

// One class of ops in one forward pass.
struct StepOp {
  std::string op;  // gemm: INT8; matmul: unquantized; attention, norm, ...; other: between the ops
  int64_t calls = 0;
  double ms = 0;
  double share = 0;       // of the timed forward pass
  double operations = 0;  // of matrix products; 0 if there are none
  double bytes = 0;       // of the matrices it reads and writes, each counted once
  double tops = 0;        // 10^12 operations per second
  double gb_per_s = 0;    // 10^9 bytes
  // The time at the ceilings over the actual time: its products, each type at its own ceiling, or
  // its bytes at the speed of a copy, whichever takes longer. 0 if a ceiling is unknown; above 1 if
  // bytes came from a cache.
  double ceiling_share = 0;
};

// The linears of one class of layers in one forward pass.
struct StepKernel {
  std::string layer;   // "attention.qkv"
  std::string op;      // gemm or matmul
  std::string kernel;  // of a gemm
  int64_t calls = 0;
  double ms = 0;
  double tops = 0;
  double ceiling_share = 0;  // as in StepOp
};

// One branch of a step: a forward pass of a network with its conditioning.
struct StepBranch {
  std::string name;         // "conditional"
  int64_t tokens = 0;       // that it sees
  double ms = 0;            // median
  Steadiness steadiness;    // of ms
  double watched_ms = 0;    // the same while each op is timed; `ops` are its parts
  double int8_tops = 0;     // of all INT8 GEMMs; 0 without any
  std::vector<StepOp> ops;  // the longest first
  std::vector<StepKernel> kernels;
};

// Something that took a while within a step.
struct StepSpan {
  std::string name;    // of the branch or, for copies, of the part
  int64_t unit = -1;   // the layer that it begins with; -1: before any that comes
  uint64_t bytes = 0;  // of a copy
  double begin_ms = 0, end_ms = 0;
};

// When layers came in one step, and when they ran. Copies for a step begin in the one before, at
// negative times, and those for the next one may end behind this one.
struct StepTimeline {
  double ms = 0;
  std::vector<StepSpan> passes;
  std::vector<StepSpan> runs;  // of layers, from the arrival of the first to the wait for the next
  std::vector<StepSpan> copies;
  double wait_ms = 0;         // between runs: no layer was there
  double copy_ms = 0;         // sum of the copies that end in this step
  uint64_t copied_bytes = 0;  // likewise

  bool is_known() const { return ms > 0; }
  double copy_gb_per_s() const {
    return copy_ms > 0 ? static_cast<double>(copied_bytes) / copy_ms * 1e-6 : 0;
  }
};

struct StepBench {
  std::string device;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // of the build
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;
  AttentionMode attention = AttentionMode::floating;  // what actually ran
  int threads = 0;
  int width = 0, height = 0;
  int64_t text_tokens = 0;
  int64_t layers = 0;
  int64_t parameters = 0;     // of all networks
  uint64_t weight_bytes = 0;  // in device memory
  uint64_t peak_bytes = 0;    // peak device memory during a step, weights included
  // With a budget:
  uint64_t max_memory = 0;
  uint64_t context_bytes = 0;   // of the budget, taken by the device's context
  std::vector<PartPlace> plan;  // of the networks
  uint64_t streamed_bytes = 0;  // that come in each step
  StepTimeline timeline;        // of the last step
  int steps = 0;
  double step_ms = 0;  // median of a whole step by the host's clock, with guidance and update
  // Per step: kernels and copies of the forward passes, 0 if they are not recorded; allocations;
  // and how often the host waited for the device.
  int64_t launches = 0, allocations = 0, waits = 0;
  // The device's ceilings, measured after the steps; 0: unknown.
  double int8_ceiling_tops = 0, bf16_ceiling_tops = 0, copy_gb_per_s = 0;
  PowerUse power;                    // during the measured steps
  std::vector<StepBranch> branches;  // of the family, in their order

  // The sum over all branches.
  OCTET_API double ms() const;
};

// Called with the current phase and its progress; phases run one after the other.
using StepProgress = std::function<void(const std::string& phase, int done, int total)>;
OCTET_API StepBench bench_step(const StepBenchRequest& request, const StepProgress& progress = {});

// The timeline as a self-contained SVG file; throws Error if there is none.
OCTET_API std::string timeline_svg(const StepBench& bench);

}  // namespace octet
