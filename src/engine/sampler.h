// Euler's method from noise to picture, in fp32, on the device of the networks.
//
//   v = sum of the branches' weights times their velocities
//   z = z + delta * v
//
// Each operation rounds once, as in the official code and in diffusers, so that given the same
// velocities all three return the same bits. The host waits for the device once per step.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "models/branch.h"
#include "models/schedule.h"
#include "nn/context.h"
#include "octet/error.h"

namespace octet::engine {

// A branch that runs in a step, and where its velocity goes: a matrix of the context's type, at the
// same address in every step.
struct BranchOut {
  size_t branch = 0;
  TensorView out;
};

// Writes the velocity of z at a step for each of the branches. z has the context's type, too.
using Velocities =
    std::function<void(const ConstTensorView& z, int step, std::span<const BranchOut> branches)>;
// The same, one branch after the other.
using Velocity =
    std::function<void(const ConstTensorView& z, int step, size_t branch, const TensorView& out)>;
Velocities one_by_one(Velocity velocity);

struct SamplerStep {
  int done = 0;
  int total = 0;
  double seconds = 0;        // time of the step; 0 before the first
  ConstTensorView velocity;  // F32, of all branches combined; no data before the first step
  ConstTensorView latent;    // F32, after the step; both are in the backend's memory
};

// Called before the first step and after each; false ends the sampling with Cancelled.
using OnStep = std::function<bool(const SamplerStep& step)>;

class Sampler {
 public:
  // For latents [rows, channels]. All arguments outlive it.
  Sampler(nn::Context& ctx, const models::Schedule& schedule,
          std::span<const models::Branch> branches, int64_t rows, int64_t channels);

  // From noise to a latent. A branch whose weight is exactly 0 in a step does not run. Throws Error
  // naming step and branch when a NaN or an infinity appears.
  std::vector<float> run(std::span<const float> noise, const Velocities& velocities,
                         const OnStep& on_step = {});

 private:
  void upload(std::span<const float> noise);
  void step(int index, const Velocities& velocities);
  // The branches that run in a step.
  std::vector<BranchOut> branches_of(int index) const;
  [[noreturn]] void explain_overflow(int index);

  nn::Context& ctx_;
  const models::Schedule& schedule_;
  std::span<const models::Branch> branches_;
  nn::Matrix z_, v_;                         // F32
  nn::Matrix input_;                         // z in the context's type, if that is not F32
  std::map<size_t, nn::Matrix> velocities_;  // of the branches that run in any step
  nn::Matrix overflow_;                      // I32 [1, 1]
};

}  // namespace octet::engine
