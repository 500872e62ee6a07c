// A planner with a fake device, and a plan file of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/temporary_folder.h"
#include "tune/tune_support.h"

namespace octet::tune::test {

class PlannerTest : public testing::Test {
 protected:
  Planner planner(TuneMode mode) { return Planner(PlanCache(path_, some_header()), mode); }

  std::function<Trial()> trial() {
    return [this] {
      ++trials_;
      return Trial{device_.measure(), {kUnquantized}};
    };
  }

  const GemmPlan& choose(Planner& planner, const GemmProblem& problem = some_problem()) {
    return planner.choose(problem, candidates_, trial());
  }

  octet::test::TemporaryFolder folder_;
  std::string path_ = folder_.file("plans/nvidia_h200.json");
  FakeDevice device_{{{"estimated", 12}, {"fastest", 10}, {"other", 11}, {kUnquantized, 20}}};
  std::vector<Candidate> candidates_ = {{"other", 3}, {"estimated", 1}, {"fastest", 2}};
  int trials_ = 0;
};

}  // namespace octet::tune::test
