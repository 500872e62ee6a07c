#include "engine/branch_runs.h"

#include <algorithm>
#include <utility>

#include "backend/host_backend.h"
#include "base/env.h"
#include "base/never_destroyed.h"

namespace octet::engine {

BranchRuns::BranchRuns(Session& session, Denoiser& device, const Job& job, nn::Context& ctx,
                       nn::Profile& profile)
    : session_(session), device_(device), job_(job), ctx_(ctx), profile_(profile) {
  for (const size_t branch : job_.branches) {
    if (!device_.has(branch)) continue;
    branches_.push_back(branch);
    uses_.push_back({std::string(row(branch).name),
                     std::string(session.family().networks[row(branch).network].name)});
  }
  seconds_.resize(uses_.size());
}

std::set<size_t> BranchRuns::networks() const {
  std::set<size_t> running;
  for (const size_t branch : branches_) running.insert(row(branch).network);
  return running;
}

LinearUses BranchRuns::linears() const {
  LinearUses linears = profile_.linears();
  for (const size_t branch : branches_) {
    device_.preparations.add_linears(branch, row(branch).network, linears);
  }
  return linears;
}

// --- before the first step ---

void BranchRuns::prepare(const BranchTexts& texts, const OnRenderProgress& progress) {
  ctx_.rows_at_once = device_.ctx.rows_at_once;  // of the newest plan
  for (const size_t network : networks()) {
    session_.load(*device_.stores.at(network), progress);
    for (const size_t branch : branches_) {
      if (row(branch).network == network) prepare_text(branch, texts);
    }
    prepare_times(network);
    device_.stores.at(network)->end_use();
    if (has_batch(network)) batched_.insert(network);
  }
  open_stream();
}

// The memory of a pass is taken first, in one piece: what passes in it must not cut the rest up.
void BranchRuns::open_stream() {
  if (device_.stream == nullptr) return;
  constexpr uint64_t kOfOps = uint64_t{32} << 20;
  ctx_.backend.trim_memory();
  if (env::graph()) {  // else nothing is recorded, and ops take memory of their own
    work_ = ctx_.backend.reserve_work(device_.work.of_pass(job_.extent()) + kOfOps);
  }
  std::vector<PartStore*> stores;
  for (const size_t network : networks()) stores.push_back(device_.stores.at(network).get());
  device_.stream->open(stores);
}

void BranchRuns::end() {
  runs_.clear();
  batched_.clear();
  work_.reset();
  if (device_.stream != nullptr) device_.stream->close();
}

// Of the passes of a step, in their order.
std::vector<size_t> BranchRuns::networks_at(int step) const {
  std::vector<size_t> running;
  const auto& guidance = job_.schedule().guidance;
  const float at = guidance[static_cast<size_t>(step) % guidance.size()];
  for (const size_t network : networks()) {
    const bool runs = std::ranges::any_of(branches_, [&](size_t branch) {
      return row(branch).network == network && row(branch).weight_at(at) != 0;
    });
    if (runs) running.push_back(network);
  }
  return running;
}

// Whose weights come while this pass runs: those of the next one of the step, or of the next step;
// behind the last step, those of the next picture.
void BranchRuns::expect_after(size_t network, int step, bool again) {
  size_t next = network;
  if (!again) {
    const std::vector<size_t> here = networks_at(step), then = networks_at(step + 1);
    const auto behind = std::ranges::upper_bound(here, network);
    next = behind != here.end() ? *behind : then.empty() ? network : then.front();
  }
  const PartStore* store = device_.stores.at(next).get();
  if (device_.stream != nullptr) device_.stream->expect(store);
  device_.stores.at(network)->set_next(store);
}

const PromptCache::Tokens& BranchRuns::tokens_of(size_t branch) const {
  static const auto& none = never_destroyed<PromptCache::Tokens>();
  switch (row(branch).sees) {
    case models::BranchText::prompt: return job_.tokens;
    case models::BranchText::negative: return job_.negative_tokens;
    case models::BranchText::none: break;
  }
  return none;
}

void BranchRuns::prepare_text(size_t branch, const BranchTexts& texts) {
  Preparations& kept = device_.preparations;
  const PromptCache::Tokens& tokens = tokens_of(branch);
  if (kept.text(branch, tokens, job_.grid) != nullptr) return;
  kept.forget_text(branch);
  std::span<const float> seen;
  if (row(branch).sees == models::BranchText::prompt) seen = texts.prompt->features;
  if (row(branch).sees == models::BranchText::negative) seen = texts.negative->features;
  const size_t network = row(branch).network;
  profile_.enter_network(session_.family().networks[network].name);
  auto conditioning = device_.networks.at(network)->prepare(ctx_, seen, job_.grid);
  profile_.enter_network("");
  PreparedText& made = kept.keep(branch, PreparedText{tokens, job_.grid, std::move(conditioning)});
  keep_record(network, made.linears);
}

void BranchRuns::prepare_times(size_t network) {
  Preparations& kept = device_.preparations;
  if (kept.times(network, times()) != nullptr) return;
  kept.forget_times(network);
  profile_.enter_network(session_.family().networks[network].name);
  auto timeline = device_.networks.at(network)->make_timeline(ctx_, times());
  profile_.enter_network("");
  PreparedTimes& made = kept.keep(network, PreparedTimes{std::move(timeline)});
  keep_record(network, made.linears);
}

void BranchRuns::keep_record(size_t network, LinearUses& linears) {
  linears = profile_.linears();
  collect();
  device_.kernels.add(std::string(session_.family().networks[network].name), profile_.kernels());
}

// --- steps ---

bool BranchRuns::has_batch(size_t network) const {
  const auto count = static_cast<size_t>(std::ranges::count_if(
      branches_, [&](size_t branch) { return row(branch).network == network; }));
  // Its memory is planned for one at a time.
  if (device_.stream != nullptr || !device_.stores.at(network)->stays_for_runs()) return false;
  return count > 1 && device_.networks.at(network)->can_batch() && has_room_for(count);
}

bool BranchRuns::has_room_for(size_t count) const {
  models::Extent extent = job_.extent();
  extent.batch = static_cast<int64_t>(count);
  return free_for_work(ctx_.backend, session_.options().model.max_memory) >
         static_cast<double>(device_.work.of(extent));
}

bool BranchRuns::velocities(const ConstTensorView& z, int step,
                            std::span<const BranchOut> branches) {
  bool recorded = true;
  for (const size_t network : networks()) {
    std::vector<BranchOut> of_network;
    for (const BranchOut& each : branches) {
      if (row(each.branch).network == network) of_network.push_back(each);
    }
    const size_t together = batched_.contains(network) ? of_network.size() : 1;
    for (size_t i = 0; i < of_network.size(); i += together) {
      const std::span<const BranchOut> run = std::span(of_network).subspan(i, together);
      expect_after(network, step, /*again=*/i + together < of_network.size());
      recorded = run_network(network, z, step, run) && recorded;
    }
  }
  if (runs_done_++ == 0) work_.reset();  // recordings know by now what they need
  return recorded;
}

bool BranchRuns::run_network(size_t network, const ConstTensorView& z, int step,
                             std::span<const BranchOut> branches) {
  PartStore& store = *device_.stores.at(network);
  Preparations& kept = device_.preparations;
  PreparedTimes& timed = *kept.times(network, times());
  std::vector<size_t> which;
  std::vector<NetworkRun::Evaluation> evaluations;
  for (const auto& [branch, out] : branches) {
    which.push_back(branch);
    const PreparedText& text = *kept.text(branch, tokens_of(branch), job_.grid);
    evaluations.push_back({text.conditioning.get(), out});
  }
  const models::Network& model = *device_.networks.at(network);
  NetworkRun& run =
      runs_.try_emplace(which, ctx_, model, *timed.timeline, can_record(store)).first->second;
  profile_.enter_network(session_.family().networks[network].name);
  const size_t begin = ctx_.backend.mark();
  run.velocities(z, step, evaluations);
  marks_.push_back({which, begin, ctx_.backend.mark()});
  store.end_use();
  profile_.enter_network("");
  return run.launches() > 0;
}

// What is recorded finds weights at the same addresses each time. A host's recordings call the
// work.
bool BranchRuns::can_record(const PartStore& store) const {
  const bool streams = device_.stream != nullptr && device_.stream->is_open();
  return (store.stays_for_runs() && store.is_loaded()) || streams ||
         keeps_data_on_host(ctx_.backend);
}

// The time of a batch is split evenly among its branches.
void BranchRuns::collect() {
  for (const Marks& each : marks_) {
    const double us = ctx_.backend.microseconds_between(each.begin, each.end);
    for (const size_t branch : each.branches) {
      const auto at = static_cast<size_t>(std::ranges::find(branches_, branch) - branches_.begin());
      const double seconds = us * 1e-6 / static_cast<double>(each.branches.size());
      ++uses_[at].steps;
      uses_[at].seconds += seconds;
      seconds_[at].push_back(seconds);
    }
  }
  marks_.clear();
  profile_.collect();
}

BranchRuns::Cost BranchRuns::cost() const {
  Cost sum;
  for (size_t i = 0; i < uses_.size(); ++i) {
    const auto text = std::ssize(tokens_of(branches_[i]));
    if (seconds_[i].empty()) continue;
    std::vector<double> ordered = seconds_[i];
    const auto middle = ordered.begin() + (std::ssize(ordered) - 1) / 2;
    std::ranges::nth_element(ordered, middle);
    sum.seconds += uses_[i].steps * *middle;
    sum.tokens += static_cast<double>(uses_[i].steps * (job_.grid.tokens() + text));
  }
  return sum;
}

}  // namespace octet::engine
