// What the plan file says about the way in which a linear should run.
#pragma once

#include <cstdint>
#include <optional>

#include "tune/plan_json.h"

namespace octet::tune {

// A linear with all that it takes, activations quantized, in both ways; one measurement for both.
struct PathTimes {
  double int8_us = 0;
  double bf16_us = 0;
  bool is_mapped = false;  // by `octet map`, not by the tuner
};

// As `octet map` measured them; else as the tuner did: the kernel and the quantization, one after
// the other, against the product in bf16. Nothing where a plan lacks either.
std::optional<PathTimes> path_times(const GemmPlan& plan);

// Whether a linear of n x k took less time in bf16 at about m rows: of the plans for n x k whose m
// is the nearest to it those decide that compare like with like, by the sum of their times. These
// are the ones that `octet map` measured, else the tuner's of plain products; fused ones, whose
// time in bf16 lacks what is fused, count where there are no others. False where no plan tells.
bool is_faster_in_bf16(const Plans& plans, int64_t m, int64_t n, int64_t k);

}  // namespace octet::tune
