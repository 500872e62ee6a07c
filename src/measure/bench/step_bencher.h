// The step of bench_step(): networks with random weights on a device, measured as often as one
// asks.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/network_run.h"
#include "measure/bench/budgeted_networks.h"
#include "measure/bench/step.h"
#include "measure/power_meter.h"
#include "measure/timing.h"
#include "models/family.h"
#include "nn/context.h"
#include "nn/linear.h"

namespace octet::measure {

struct BenchedNetwork {
  std::unique_ptr<models::Network> network;
  std::unique_ptr<models::Timeline> timeline;
};

// One branch with what it works on.
struct BenchedBranch {
  models::Branch row;
  std::unique_ptr<models::Conditioning> conditioning;
  std::unique_ptr<engine::NetworkRun> run;
  std::pair<size_t, size_t> marks;  // around its latest forward pass
  std::vector<double> us;           // of each measured forward pass
};

// Attaches a profile to a context as long as this lives: a pass that throws leaves none behind.
class Watching {
 public:
  Watching(nn::Context& ctx, nn::Profile& profile) : ctx_(ctx) { ctx_.profile = &profile; }
  ~Watching() { ctx_.profile = nullptr; }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  nn::Context& ctx_;
};

class StepBencher {
 public:
  // Throws Error for a request that is out of range.
  StepBencher(const StepBenchRequest& request, const MakeNetwork& make,
              const StepProgress& progress);

  // Throws InvalidRequest for a budget where it says nothing.
  void check_budget() const;
  StepBench run();
  // Once more with the same weights.
  StepBench run_again(const StepBenchRequest& request);

 private:
  static constexpr int kWatchedPasses = 3;

  models::Grid grid() const {
    return {request_.height / token_side_, request_.width / token_side_};
  }
  int64_t image_tokens() const { return grid().tokens(); }
  void report(const char* phase, int64_t done, int64_t total) const {
    if (progress_) progress_(phase, static_cast<int>(done), static_cast<int>(total));
  }

  void plan_budget();
  void count_weights();
  void announce(double bytes);
  void make_weights();
  void prepare();
  void warm_up();
  void measure(StepBench& bench);
  void read_timeline(StepBench& bench);
  void find_ceilings(StepBench& bench);
  StepBranch watch(BenchedBranch& branch);
  int64_t text_tokens(const BenchedBranch& branch) const {
    return branch.row.sees != models::BranchText::none ? request_.text_tokens : 0;
  }
  // `next`: whose layers may come meanwhile.
  nn::Matrix forward(BenchedBranch& branch, const BenchedBranch& next) {
    expect(next);
    auto& [network, timeline] = networks_[branch.row.network];
    nn::Matrix out = ctx_.matrix(image_tokens(), network->latent_channels());
    network->velocity(ctx_, *branch.conditioning, *timeline, *latent_, out);
    return out;
  }
  const BenchedBranch& behind(const BenchedBranch& branch) const {
    return branches_[static_cast<size_t>(&branch - branches_.data() + 1) % branches_.size()];
  }
  void expect(const BenchedBranch& next) {
    if (budgeted_) budgeted_->expect(next.row.network);
  }
  StepBench measured();

  StepBenchRequest request_;
  StepProgress progress_;
  const models::Family& family_;
  int token_side_;  // pixels
  bool int8_;
  std::unique_ptr<Backend> backend_;
  nn::Context ctx_;
  PowerMeter power_;
  Ceilings ceilings_;
  std::vector<BenchedNetwork> networks_;
  std::unique_ptr<BudgetedNetworks> budgeted_;  // ends before them; null without a budget
  std::vector<BenchedBranch> branches_;
  std::vector<float> noise_;
  std::optional<nn::Matrix> latent_;  // the same in the type of the activations
  int64_t parameters_ = 0;
  uint64_t weight_bytes_ = 0;
  Sentence why_no_weights_;  // after they could not be made
};

}  // namespace octet::measure
