// The parts of octet::map_device: every way in which a device can run one linear, measured one
// beside the other, and the steps and the memory that follow.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/gemm_tuning.h"
#include "models/family.h"
#include "octet/tools/map.h"

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

// Microseconds of a linear in one way at any number of rows, by those that were measured: on the
// line between the two nearest ones, or in proportion where there is one. 0 where there is none.
double linear_us_at(const std::vector<MapRow>& rows, const std::string& way, int64_t m, int64_t n,
                    int64_t k);

using RunStep = std::function<StepBench(const StepBenchRequest&)>;

// What steps take besides their time.
struct MapSteps {
  std::vector<MapStep> steps;
  std::vector<MapMemory> work;  // only pixels, way (int8 or bf16) and work_bytes
};

// The steps of a family of so many `layers` at these sizes: those that `run` measures, with
// `request.layers` of them, and those that follow from them and the rows.
MapSteps map_steps(const models::Family& family, const std::vector<int>& sizes,
                   const MapRequest& request, int64_t layers, const std::vector<MapRow>& rows,
                   const RunStep& run);

// By ways and sizes.
std::vector<MapMemory> map_memory(const models::Family& family, const std::vector<int>& sizes,
                                  const std::vector<std::string>& ways, int64_t text_tokens,
                                  const std::vector<MapMemory>& work);

}  // namespace octet::measure
