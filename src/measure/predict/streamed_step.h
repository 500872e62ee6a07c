// A denoising step whose weights do not all stay on the card, as engine/weight_stream.h runs it:
// units one after the other, copies one after the other beside them, a few buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/residency.h"
#include "measure/predict/card.h"

namespace octet::predict {

// What a card gets from pinned memory of its host, GB/s: of its lanes' rate the share that an H200
// was measured to get, 55.3 of 64.
double host_gbs(const Card& card);

// A unit of a pass, in the order of the step.
struct UnitRun {
  double ms = 0;                // once its weights are there
  uint64_t streamed_bytes = 0;  // that come for it; 0: they stay
};

// The units of a step by a plan. `pass_ms`: of each network, which its layers share evenly.
std::vector<UnitRun> unit_runs(const std::vector<engine::PartNeed>& parts,
                               const engine::DevicePlan& plan, std::span<const double> pass_ms);

struct StreamedStep {
  struct Interval {
    size_t unit = 0;
    double begin_ms = 0, end_ms = 0;  // a copy for the next step may begin before this one ends
  };
  double ms = 0;
  std::vector<Interval> units, copies;
};

// One of many like it. All copies come from host memory.
StreamedStep streamed_step(std::span<const UnitRun> units, int buffers, double gbs);

}  // namespace octet::predict
