// Benchmark of one denoising step of the whole transformer. Needs no checkpoint: the weights are
// random, and the time does not depend on them.
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

#include "octet/bench.h"
#include "octet/engine.h"
#include "octet/export.h"
#include "octet/power_use.h"

namespace octet {

struct StepBenchRequest {
  int width = 1024, height = 1024;  // multiples of 16
  int64_t text_tokens = 512;        // 0 to 2048
  int64_t layers = 34;              // of the transformer, fewer to shorten it
  std::string device = "auto";      // auto, ref, cpu, cuda[:i]
  int threads = 0;                  // 0: one per physical core
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;  // the large ones
  AttentionMode attention = AttentionMode::automatic;
  Tuning tuning = Tuning::missing;
  int steps = 7;              // measured, 1 to 1000; the medians are reported
  bool require_int8 = false;  // an Error when a large linear ran as anything else
  std::string family = "ideogram4";
};

// One class of ops in one forward pass.
struct StepOp {
  std::string op;  // gemm: INT8; matmul: unquantized; attention, norm, ...; other: between the ops
  int64_t calls = 0;
  double ms = 0;
  double share = 0;       // of the forward pass that was watched
  double operations = 0;  // of products of matrices; 0 where there are none
  double bytes = 0;       // of the matrices that it reads and writes, each once
  double tops = 0;        // 10^12 operations per second
  double gb_per_s = 0;    // 10^9 bytes
  // Of its time, what the ceilings would leave of it: its products at theirs, each kind at its own,
  // or its bytes at the speed of a copy, whichever is longer. 0 where a ceiling is unknown; above 1
  // where bytes came from a cache.
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
  double ceiling_share = 0;  // as of an op
};

// One branch of a step: a forward pass of a network with what it is told.
struct StepBranch {
  std::string name;         // "conditional"
  int64_t tokens = 0;       // that it sees
  double ms = 0;            // median
  Steadiness steadiness;    // of ms
  double watched_ms = 0;    // the same while each op is timed, of which `ops` are the parts
  double int8_tops = 0;     // of all INT8 GEMMs; 0 without any
  std::vector<StepOp> ops;  // the longest first
  std::vector<StepKernel> kernels;
};

struct StepBench {
  std::string device;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // of the build
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;
  AttentionMode attention = AttentionMode::floating;  // what ran, whatever was asked for
  int threads = 0;
  int width = 0, height = 0;
  int64_t text_tokens = 0;
  int64_t layers = 0;
  int64_t parameters = 0;     // of all networks
  uint64_t weight_bytes = 0;  // in the device's memory
  uint64_t peak_bytes = 0;    // the most of it during a step, weights included
  int steps = 0;
  double step_ms = 0;  // median of a whole step by the host's clock, with guidance and update
  // Of a step: kernels and copies of the forward passes, 0 where they are not recorded;
  // allocations; and how often the host waited for the device.
  int64_t launches = 0, allocations = 0, waits = 0;
  // What the device reaches at most, measured after the steps; 0: unknown.
  double int8_ceiling_tops = 0, bf16_ceiling_tops = 0, copy_gb_per_s = 0;
  PowerUse power;                    // during the measured steps
  std::vector<StepBranch> branches;  // of the family, in their order

  // Of a step, which is one forward pass of each.
  OCTET_API double ms() const;
};

// `progress` is told what is being done, and how much of it; one phase follows the other.
using StepProgress = std::function<void(const std::string& phase, int done, int total)>;
OCTET_API StepBench bench_step(const StepBenchRequest& request, const StepProgress& progress = {});

}  // namespace octet
