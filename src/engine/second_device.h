// The branches of one request that run on a session's second device, at the same time as those on
// the first: on a thread of its own for each step. What goes over is the latent, what comes back
// the velocities, both through host memory: a megabyte for a picture of 1024 x 1024 pixels.
#pragma once

#include <exception>
#include <map>
#include <thread>
#include <vector>

#include "engine/branch_runs.h"

namespace octet::engine {

class SecondDevice {
 public:
  // `home`: the first device, where the sampler is. All arguments outlive it.
  SecondDevice(Session& session, Denoiser& device, const Job& job, Backend& home);
  ~SecondDevice() { wait(); }
  SecondDevice(const SecondDevice&) = delete;
  SecondDevice& operator=(const SecondDevice&) = delete;

  void prepare(const BranchTexts& texts, const OnRenderProgress& progress);

  // Begins the evaluations of a step, which are its own until end(). `z` and where the velocities
  // go are at home.
  void begin(const ConstTensorView& z, int step, std::vector<BranchOut> branches);
  // Waits for them, and brings the velocities home. Throws what they threw. Returns whether all
  // were replayed from recordings.
  bool end();
  // Waits for what begin() has begun, if anything.
  void wait();

  BranchRuns& runs() { return runs_; }
  const nn::Profile& profile() const { return profile_; }

 private:
  void evaluate(int step);

  Backend& home_;
  nn::Profile profile_;
  nn::Context ctx_;
  BranchRuns runs_;
  nn::Matrix z_;
  std::map<size_t, nn::Matrix> velocities_;  // by branch
  // Of the step that runs.
  std::vector<BranchOut> branches_;  // with places at home
  std::vector<std::byte> latent_;    // in host memory, as the others
  std::map<size_t, std::vector<std::byte>> results_;
  std::vector<std::thread> thread_;  // one, or none where the system allows no more
  std::exception_ptr failure_;
  bool recorded_ = false;
};

}  // namespace octet::engine
