// Euler's method from noise to picture, on the host in fp32: the networks are a function.
//
//   v = g * first(z, t) + (1 - g) * second(z, t)
//   z = z + delta * v
//
// Each operation rounds once, as in the official code and in diffusers, so that given the same
// velocities all three return the same bits.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/schedule.h"
#include "octet/cancelled.h"

namespace octet::engine {

// The velocity of every element of z at a step by one of a model's networks: 0, or 1 for that which
// guidance leads away from.
using Velocity =
    std::function<std::vector<float>(std::span<const float> z, int step, size_t network)>;

struct SamplerStep {
  int done = 0;
  int total = 0;
  double seconds = 0;               // that the step took; 0 before the first
  std::span<const float> velocity;  // that it went along, guided; none before the first
  std::span<const float> latent;    // where it led to
};

// Called before the first step and after each; false ends the sampling with Cancelled.
using OnStep = std::function<bool(const SamplerStep& step)>;

// `z` is the noise; returns the latent. A step whose guidance is exactly 1 asks for no
// second velocity. Throws Error naming the step when a velocity has another size than z, or
// when a NaN or an infinity appears.
std::vector<float> sample(std::vector<float> z, const models::Schedule& schedule,
                          const Velocity& velocity, const OnStep& on_step = {});

}  // namespace octet::engine
