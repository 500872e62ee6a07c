// Euler's method from noise to picture, in fp32 where the networks run: they are a function here.
//
//   v = g * first(z, t) + (1 - g) * second(z, t)
//   z = z + delta * v
//
// Each operation rounds once, as in the official code and in diffusers, so that given the same
// velocities all three return the same bits. The host waits for the device once in a step.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/schedule.h"
#include "nn/context.h"
#include "octet/cancelled.h"

namespace octet::engine {

// Writes the velocity of every element of z at a step by one of a model's networks: 0, or 1 for
// that which guidance leads away from. Both are matrices of the context's type, for a network in
// the same memory each time.
using Velocity =
    std::function<void(const ConstTensorView& z, int step, size_t network, const TensorView& out)>;

struct SamplerStep {
  int done = 0;
  int total = 0;
  double seconds = 0;        // that the step took; 0 before the first
  ConstTensorView velocity;  // F32, that it went along, guided; no data before the first
  ConstTensorView latent;    // F32, where it led to; both are in the backend's memory
};

// Called before the first step and after each; false ends the sampling with Cancelled.
using OnStep = std::function<bool(const SamplerStep& step)>;

class Sampler {
 public:
  // For latents [rows, channels]; the context and the schedule outlive it.
  Sampler(nn::Context& ctx, const models::Schedule& schedule, int64_t rows, int64_t channels);

  // From noise to a latent. A step whose guidance is exactly 1 asks for no second velocity. Throws
  // Error naming the step when a NaN or an infinity appears.
  std::vector<float> run(std::span<const float> noise, const Velocity& velocity,
                         const OnStep& on_step = {});

 private:
  void upload(std::span<const float> noise);
  void step(int index, const Velocity& velocity);
  [[noreturn]] void explain_overflow(int index);

  nn::Context& ctx_;
  const models::Schedule& schedule_;
  nn::Matrix z_, v_;          // F32
  nn::Matrix input_;          // z in the context's type, where that is another
  nn::Matrix velocities_[2];  // of the networks
  nn::Matrix overflow_;       // I32 [1, 1]
};

}  // namespace octet::engine
