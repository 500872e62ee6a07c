// Euler's method from noise to picture, on the host in fp32: the networks are a function.
//
//   v = g * conditional(z, t) + (1 - g) * unconditional(z, t)
//   z = z + delta * v
//
// Each operation rounds once, as in the official code and in diffusers, so that given the same
// velocities all three return the same bits.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/ideogram4/schedule.h"
#include "octet/error.h"

namespace octet::engine {

// Two networks of one shape with weights of their own; the unconditional one sees no caption.
enum class Branch { conditional, unconditional };

// The velocity of every element of z at the time t.
using Velocity =
    std::function<std::vector<float>(std::span<const float> z, float t, Branch branch)>;

struct SamplerStep {
  int done = 0;
  int total = 0;
  double seconds = 0;               // that the step took; 0 before the first
  std::span<const float> velocity;  // that it went along, guided; none before the first
  std::span<const float> latent;    // where it led to
};

// Called before the first step and after each; false ends the sampling with Cancelled.
using OnStep = std::function<bool(const SamplerStep& step)>;

class Cancelled : public Error {
 public:
  using Error::Error;
};

// `z` is the noise; returns the latent. A step whose guidance is exactly 1 asks for no
// unconditional velocity. Throws Error naming the step when a velocity has another size than z, or
// when a NaN or an infinity appears.
std::vector<float> sample(std::vector<float> z, const ideogram4::Schedule& schedule,
                          const Velocity& velocity, const OnStep& on_step = {});

}  // namespace octet::engine
