// The parts of octet::map_device that tests look at by themselves.
#pragma once

#include <functional>
#include <vector>

#include "models/family.h"
#include "octet/tools/map.h"

namespace octet::measure {

// Microseconds of a linear in one way at any number of rows, by those that were measured: on the
// line between the two nearest ones, or in proportion where there is one. 0 where there is none.
double linear_us_at(const std::vector<MapRow>& rows, const std::string& way, int64_t m, int64_t n,
                    int64_t k);

using RunStep = std::function<StepBench(const StepBenchRequest&)>;

// What steps take besides their time.
struct MapSteps {
  std::vector<MapStep> steps;
  std::vector<MapMemory> work;  // pixels, way (int8 or bf16) and work_bytes alone
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
