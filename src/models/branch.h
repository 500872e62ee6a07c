// A branch: one evaluation of a network within a step of denoising, with what it is told and with
// its weight in the combination
//
//   v = sum of weight_at(guidance) * velocity
//
// A network is a set of weights, and may have several branches. Which ones a family has is a list
// of rows:
//
//   no guidance                {"only", 0, prompt, 1, 0}
//   one network, two prompts   {"positive", 0, prompt, 0, 1}, {"negative", 0, negative, 1, -1}
//   two networks               {"conditional", 0, prompt, 0, 1}, {"unconditional", 1, none, 1, -1}
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace octet::models {

struct Schedule;

// The text that a branch sees.
enum class BranchText : uint8_t {
  prompt,
  negative,  // of the request; an empty one where it has none
  none,
};

struct Branch {
  std::string_view name;
  size_t network = 0;  // of Family::networks
  BranchText sees = BranchText::prompt;
  float weight = 1, weight_per_guidance = 0;

  // Of exactly 0: the branch does not run.
  float weight_at(float guidance) const { return weight + weight_per_guidance * guidance; }
};

// Those that some step runs, in their order; indices of `branches`.
std::vector<size_t> running_branches(std::span<const Branch> branches, const Schedule& schedule);

// Steps in which a network runs, each branch counted by itself; of the first `steps`.
int64_t runs_of_network(std::span<const Branch> branches, size_t network, const Schedule& schedule,
                        int steps);

// Whether a network has a part in pictures without guidance.
bool runs_unguided(std::span<const Branch> branches, size_t network);

// Whether guidance changes anything.
bool takes_guidance(std::span<const Branch> branches);

// Whether some branch sees this text.
bool sees_text(std::span<const Branch> branches, BranchText text);

}  // namespace octet::models
