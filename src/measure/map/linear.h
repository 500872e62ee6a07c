// Every way in which a device can run one linear, measured one beside the other.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/gemm_tuning.h"
#include "octet/tools/gemm_shape.h"

namespace octet::measure {

inline constexpr const char* kFp8 = "fp8";
inline constexpr const char* kNf4 = "nf4";
inline constexpr const char* kFakeInt8 = "fake";

// One way to the outputs of a linear, quantization of the activations included.
struct WayTimes {
  std::string way;     // kInt8, kBf16, kFp8, kNf4, kFakeInt8
  std::string how;     // in words
  double cold_us = 0;  // median of single runs in turns, with caches emptied where a device can
  double load_us = 0;  // per run, of runs without pause
  double error = 0;    // relative, of its outputs
};

struct LinearTimes {
  GemmPlan plan;
  std::vector<WayTimes> ways;
  bool kept = false;  // in the plan file
};

struct MapTiming {
  // Of each way without pause, in two halves; 0: one run. Before each half it runs for a fifth of
  // `seconds` that is not counted, while the clock is still that of the way before.
  double seconds = 0.2;
  int rounds = 7;  // of single runs, at least
};

// In bf16. The plan is made first, as the backend was told to (tuning takes memory of its own), and
// gets the times under load as references, for Linears::automatic, where it was measured. Throws
// Error, naming the way, when its outputs are not those of the product: a time of something else is
// worth nothing.
LinearTimes measure_ways(Backend& backend, const GemmShape& shape, const MapTiming& timing);

// Of the ways that Octet runs itself, the faster one under load: kInt8 or kBf16.
std::string own_path(const std::vector<WayTimes>& ways);
// Of all of them.
std::string fastest_way(const std::vector<WayTimes>& ways);

}  // namespace octet::measure
