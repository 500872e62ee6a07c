// Where the time of a pass goes: separate passes, in which each op is timed.
#include <algorithm>

#include "measure/bench/step_bencher.h"
#include "nn/profile.h"

namespace octet::measure {

// After the steps, when the device is as warm as they left it. (A budget has no room for it then.)
void StepBencher::find_ceilings(StepBench& bench) {
  if (!budgeted_) ceilings_ = measure::measure_ceilings(*backend_);
  bench.int8_ceiling_tops = ceilings_.int8 * 1e-12;
  bench.bf16_ceiling_tops = ceilings_.bf16 * 1e-12;
  bench.copy_gb_per_s = ceilings_.copy * 1e-9;
}

StepBranch StepBencher::watch(BenchedBranch& branch) {
  StepBranch result;
  result.name = branch.row.name;
  result.tokens = text_tokens(branch) + image_tokens();
  const measure::Timing timing = measure::timing_of(branch.us);
  result.ms = timing.median * 1e-3;
  result.steadiness = measure::steadiness_of({timing});

  nn::Profile profile(*backend_);
  double watched_us = 0;
  for (int i = 0; i < kWatchedPasses; ++i) {
    const Watching watching(ctx_, profile);
    const size_t begin = backend_->mark();
    { const nn::Matrix velocity = forward(branch, branch); }
    watched_us += backend_->microseconds_between(begin, backend_->mark());
    profile.collect();
  }

  const auto ms_each = [](double us) { return us * 1e-3 / kWatchedPasses; };
  result.watched_ms = ms_each(watched_us);
  double rest = watched_us;
  const auto share_of = [&](const nn::OpTime& time) {
    return measure::ceiling_share(time.work, time.us, ctx_.dtype, ceilings_);
  };
  for (const auto& [op, time] : profile.ops()) {
    result.ops.push_back({.op = op,
                          .calls = time.calls / kWatchedPasses,
                          .ms = ms_each(time.us),
                          .share = time.us / watched_us,
                          .operations = time.work.operations / kWatchedPasses,
                          .bytes = time.work.bytes / kWatchedPasses,
                          .tops = time.tops(),
                          .gb_per_s = time.us > 0 ? time.work.bytes / time.us * 1e-3 : 0,
                          .ceiling_share = share_of(time)});
    rest -= time.us;
    if (op == "gemm") result.int8_tops = time.tops();
  }
  std::sort(result.ops.begin(), result.ops.end(),
            [](const StepOp& a, const StepOp& b) { return a.ms > b.ms; });
  rest = std::max(rest, 0.0);
  result.ops.push_back({"other", 0, ms_each(rest), rest / watched_us});
  for (const auto& use : profile.kernels()) {
    result.kernels.push_back({use.layer, use.op, use.kernel, use.time.calls / kWatchedPasses,
                              ms_each(use.time.us), use.time.tops(), share_of(use.time)});
  }
  return result;
}

}  // namespace octet::measure
