// The text of a plan file and the one validator for it.
//
//   {"header": {"schema": 2, "device": "NVIDIA H200", "multiprocessors": 132, "driver": "570.86",
//               "toolkit": "13.0", "library": "0.1.0"},
//    "plans": {"m512 n4608 k4608 BF16+bias rows": {"kernel": "sm90_128x256x128_s4_c2", "us": 31.5,
//              "under_load": true, "runner_up": "sm90_128x128x128_s5_c1", "runner_up_us": 33.0,
//              "reference_us": {"unquantized": 58.25}, "date": "2025-01-31T12:00:00Z"}}}
//
// `reference_us` are other ways to the same result, by name: what the tuner ran beside the kernels,
// and what `octet map` measured (backend/gemm_tuning.h has the names). Schema 1 had times of single
// runs alone. Its choices lose by some percent in a model, so they are not read. A plan file lies
// where others can write, so nothing in it is believed: members, types and ranges are all checked,
// and one fault refuses the whole file. It can be measured again.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "backend/gemm_tuning.h"

namespace octet::tune {

// What measurements depend on. Plans made under another header are worthless here.
struct PlanHeader {
  std::string device;  // its name
  int multiprocessors = 0;
  std::string driver;
  std::string toolkit;
  std::string library;  // Octet's version
};

// By GemmProblem::to_string().
using Plans = std::map<std::string, GemmPlan>;

// A file that the writer makes can reach none of these but the first, which the writer observes.
inline constexpr size_t kMaxPlans = 4096;
inline constexpr size_t kMaxPlanTextBytes = 200;  // of a name or a key
inline constexpr size_t kMaxPlanReferences = 16;
inline constexpr size_t kMaxPlanFileBytes = 32 << 20;

// The same header with text that a plan file can hold: anything but printable ASCII without quotes
// and backslashes becomes '?', and what is too long is cut.
PlanHeader storable(PlanHeader header);

// Throws Error when a plan file cannot hold this plan.
void check_storable(const std::string& key, const GemmPlan& plan);

std::string plans_to_text(const PlanHeader& header, const Plans& plans);

struct PlansFromText {
  std::string difference;  // what of the header is not as expected; empty when it is all the same
  Plans plans;             // empty when there is a difference
};

// Throws Error, beginning with `what`, for a text that the writer cannot have made.
PlansFromText plans_from_text(std::string_view text, const std::string& what,
                              const PlanHeader& expected);

}  // namespace octet::tune
