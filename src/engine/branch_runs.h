// The branches of one request on one device: their texts and times, and their evaluations step by
// step.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "engine/network_run.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "nn/profile.h"

namespace octet::engine {

// The texts that branches may see.
struct BranchTexts {
  PromptCache::Text prompt, negative;
};

class BranchRuns {
 public:
  // All arguments outlive it.
  BranchRuns(Session& session, Denoiser& device, const Job& job, nn::Context& ctx,
             nn::Profile& profile);
  ~BranchRuns() { end(); }
  BranchRuns(const BranchRuns&) = delete;
  BranchRuns& operator=(const BranchRuns&) = delete;

  // Loads the networks that run, and prepares texts and times for them.
  void prepare(const BranchTexts& texts, const OnRenderProgress& progress);
  // Evaluates all branches of a step, those of one network as one batch if it can and there is
  // room. Returns whether all were replayed from recordings.
  bool velocities(const ConstTensorView& z, int step, std::span<const BranchOut> branches);
  // After the last step: releases the runs' memory, and weights that came for them.
  void end();

  // Waits for the device and counts what ran since the last call, also in the profile.
  void collect();

  // What its evaluations take: each counts as the median of its branch, since the first ones choose
  // kernels and are recorded.
  struct Cost {
    double seconds = 0, tokens = 0;
  };
  Cost cost() const;

  const std::vector<size_t>& branches() const { return branches_; }  // those that run here
  const std::vector<BranchUse>& uses() const { return uses_; }       // of these
  std::set<size_t> networks() const;                                 // likewise
  // Of these networks, even if run only for earlier pictures.
  LinearUses linears() const;

 private:
  void prepare_text(size_t branch, const BranchTexts& texts);
  void prepare_times(size_t network);
  // Keeps the kernels and linears that ran so far: later pictures use their results.
  void keep_record(size_t network, LinearUses& linears);
  bool has_batch(size_t network) const;
  // Whether free memory allows this many evaluations as one batch.
  bool has_room_for(size_t count) const;
  // `branches` are those of one network. Returns whether it was replayed from a recording.
  bool run_network(size_t network, const ConstTensorView& z, int step,
                   std::span<const BranchOut> branches);
  void open_stream();
  bool can_record(const PartStore& store) const;
  std::vector<size_t> networks_at(int step) const;
  void expect_after(size_t network, int step, bool again);
  const models::Branch& row(size_t branch) const { return session_.family().branches[branch]; }
  const PromptCache::Tokens& tokens_of(size_t branch) const;
  std::span<const float> times() const {
    return std::span(job_.schedule().times).first(job_.schedule().deltas.size());
  }

  Session& session_;
  Denoiser& device_;
  const Job& job_;
  nn::Context& ctx_;
  nn::Profile& profile_;
  std::vector<size_t> branches_;
  std::map<std::vector<size_t>, NetworkRun> runs_;  // by the branches that run together
  std::set<size_t> batched_;                        // networks
  std::shared_ptr<Buffer> work_;                    // of a pass, until the runs have their own
  int64_t runs_done_ = 0;
  struct Marks {
    std::vector<size_t> branches;
    size_t begin = 0, end = 0;
  };
  std::vector<Marks> marks_;  // since they were last collected
  std::vector<BranchUse> uses_;
  std::vector<std::vector<double>> seconds_;  // of each evaluation, by the same index
};

}  // namespace octet::engine
