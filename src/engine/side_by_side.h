// The branches of one request on all devices of a session: on one, or side by side on two.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/second_device.h"

namespace octet::engine {

class SideBySide {
 public:
  // `ctx`, which has the profile, is of the first device. All arguments outlive it.
  SideBySide(Session& session, const Job& job, nn::Context& ctx, nn::Profile& profile);

  // See BranchRuns.
  void prepare(const BranchTexts& texts, const OnRenderProgress& progress);
  bool velocities(const ConstTensorView& z, int step, std::span<const BranchOut> branches);
  void end();
  void collect();

  // After the last step: how long an evaluation takes, for estimates.
  void keep_times();
  // Evaluations of networks in the first `steps` steps of an image.
  int64_t evaluations(int steps) const;

  // Of all devices, as of the last collect().
  std::vector<BranchUse> uses() const;
  std::vector<nn::Profile::KernelUse> kernels() const;
  std::map<std::string, nn::OpTime> ops() const;
  LinearUses linears_now() const;  // of this request alone
  LinearUses linears() const;
  void add_fingerprints(weights::Fingerprint& sum) const;

 private:
  Session& session_;
  const Job& job_;
  const nn::Profile& profile_;
  BranchRuns first_;
  std::unique_ptr<SecondDevice> second_;  // null: there is none, or nothing for it to do
};

}  // namespace octet::engine
