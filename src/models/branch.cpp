#include "models/branch.h"

#include <algorithm>

#include "models/schedule.h"

namespace octet::models {

std::vector<size_t> running_branches(std::span<const Branch> branches, const Schedule& schedule) {
  std::vector<size_t> running;
  for (size_t i = 0; i < branches.size(); ++i) {
    const bool runs = std::ranges::any_of(schedule.guidance,
                                          [&](float by) { return branches[i].weight_at(by) != 0; });
    if (runs) running.push_back(i);
  }
  return running;
}

int64_t runs_of_network(std::span<const Branch> branches, size_t network, const Schedule& schedule,
                        int steps) {
  int64_t runs = 0;
  for (const Branch& branch : branches) {
    if (branch.network != network) continue;
    runs += std::count_if(schedule.guidance.begin(), schedule.guidance.begin() + steps,
                          [&](float by) { return branch.weight_at(by) != 0; });
  }
  return runs;
}

bool runs_unguided(std::span<const Branch> branches, size_t network) {
  return std::ranges::any_of(branches, [&](const Branch& branch) {
    return branch.network == network && branch.weight_at(1) != 0;
  });
}

bool takes_guidance(std::span<const Branch> branches) {
  return std::ranges::any_of(branches,
                             [](const Branch& branch) { return branch.weight_per_guidance != 0; });
}

bool sees_text(std::span<const Branch> branches, BranchText text) {
  return std::ranges::any_of(branches, [&](const Branch& branch) { return branch.sees == text; });
}

}  // namespace octet::models
