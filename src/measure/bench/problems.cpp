#include "measure/bench/problems.h"

#include <algorithm>

#include "tune/path_choice.h"

namespace octet::measure {

GemmProblem plain_problem(const GemmShape& shape, DType out) {
  return {.m = shape.m, .n = shape.n, .k = shape.k, .out = out, .fusion = Fusion::none};
}

std::vector<GemmProblem> model_problems(const std::vector<GemmShape>& shapes) {
  std::vector<GemmProblem> problems;
  const auto add = [&problems](const GemmProblem& problem) {
    const bool is_new = std::find(problems.begin(), problems.end(), problem) == problems.end();
    if (is_new) problems.push_back(problem);
  };
  for (const GemmShape& shape : shapes) {
    GemmProblem problem = plain_problem(shape, DType::bf16);
    add(problem);
    if (!shape.gate_up) continue;
    problem.fusion = Fusion::swiglu;
    add(problem);
  }
  return problems;
}

double operations_of(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

std::string faster_path(const GemmPlan& plan) {
  const auto times = tune::path_times(plan);
  if (!times) return "";
  return times->int8_us < times->bf16_us ? kInt8 : kBf16;
}

}  // namespace octet::measure
