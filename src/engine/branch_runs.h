// The branches of the pictures of one request: what they are told, and their evaluations step by
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

// Features of the texts that branches may see.
struct BranchTexts {
  PromptCache::Features prompt, negative;
};

class BranchRuns {
 public:
  // All outlive it.
  BranchRuns(Session& session, const Job& job, nn::Context& ctx, nn::Profile& profile);

  // Loads the networks that run, and tells them texts and times.
  void prepare(const BranchTexts& texts, const OnRenderProgress& progress);
  // Of all branches of a step: those of a network as one batch, if it can and there is room.
  // Whether all ran as they were recorded.
  bool velocities(const ConstTensorView& z, int step, std::span<const BranchOut> branches);
  // After the last step: gives its memory back.
  void end() { runs_.clear(); }

  // Waits for the device, and counts what ran since the last time, in the profile, too.
  void collect();

  // After the last step: how long an evaluation takes, for estimates.
  void keep_times();

  const std::vector<BranchUse>& uses() const { return uses_; }
  std::set<size_t> networks() const;  // that run
  LinearUses linears() const;         // of these networks, also when they ran for earlier pictures
  // Of networks, in the first steps of an image.
  int64_t evaluations(int steps) const;

 private:
  void prepare_text(size_t branch, const BranchTexts& texts);
  void prepare_times(size_t network);
  // What ran so far made things that later pictures use.
  void keep_record(size_t network, LinearUses& linears);
  bool has_batch(size_t network) const;
  // `branches`: of one network. Whether it ran as it was recorded.
  bool run_network(size_t network, const ConstTensorView& z, int step,
                   std::span<const BranchOut> branches);
  const models::Branch& row(size_t branch) const { return session_.family().branches[branch]; }
  const PromptCache::Tokens& tokens_of(size_t branch) const;
  std::span<const float> times() const {
    return std::span(job_.schedule().times).first(job_.schedule().deltas.size());
  }

  Session& session_;
  const Job& job_;
  nn::Context& ctx_;
  nn::Profile& profile_;
  std::map<std::vector<size_t>, NetworkRun> runs_;  // of the branches that run together
  std::set<size_t> batched_;                        // networks
  struct Marks {
    std::vector<size_t> branches;
    size_t begin = 0, end = 0;
  };
  std::vector<Marks> marks_;  // since they were last collected
  std::vector<BranchUse> uses_;
};

}  // namespace octet::engine
