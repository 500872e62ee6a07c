#include "engine/side_by_side.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace octet::engine {
namespace {

void add(nn::OpTime& sum, const nn::OpTime& time) {
  sum.calls += time.calls;
  sum.us += time.us;
  sum.work += time.work;
}

// A network that both devices have ran on both.
void add(LinearUses& sum, const LinearUses& further) {
  for (const auto& [name, use] : further) {
    nn::Profile::LinearUse& both = sum[name];
    both.precision = use.precision;
    both.int8 += use.int8;
    both.floating += use.floating;
  }
}

}  // namespace

SideBySide::SideBySide(Session& session, const Job& job, nn::Context& ctx, nn::Profile& profile)
    : session_(session),
      job_(job),
      profile_(profile),
      first_(session, session.denoiser(0), job, ctx, profile) {
  if (session.device_count() == 1) return;
  Denoiser& device = session.denoiser(1);
  const bool has_work =
      std::ranges::any_of(job.branches, [&](size_t branch) { return device.has(branch); });
  if (has_work) second_ = std::make_unique<SecondDevice>(session, device, job, ctx.backend);
}

void SideBySide::prepare(const BranchTexts& texts, const OnRenderProgress& progress) {
  first_.prepare(texts, progress);
  if (second_ != nullptr) second_->prepare(texts, progress);
}

bool SideBySide::velocities(const ConstTensorView& z, int step,
                            std::span<const BranchOut> branches) {
  if (second_ == nullptr) return first_.velocities(z, step, branches);
  std::vector<BranchOut> here, there;
  for (const BranchOut& each : branches) {
    (session_.denoiser(0).has(each.branch) ? here : there).push_back(each);
  }
  if (there.empty()) return first_.velocities(z, step, here);
  second_->begin(z, step, std::move(there));
  bool recorded = false;
  try {
    recorded = first_.velocities(z, step, here);
  } catch (...) {
    second_->wait();  // nobody may use its device before
    throw;
  }
  return second_->end() && recorded;
}

void SideBySide::end() {
  first_.end();
  if (second_ != nullptr) second_->runs().end();
}

void SideBySide::collect() {
  first_.collect();
  if (second_ != nullptr) second_->runs().collect();
}

void SideBySide::keep_times() {
  BranchRuns::Cost cost = first_.cost();
  if (second_ != nullptr) {
    const BranchRuns::Cost further = second_->runs().cost();
    cost.seconds += further.seconds;
    cost.tokens += further.tokens;
  }
  if (cost.tokens > 0) session_.kept().times.evaluation_s_per_token = cost.seconds / cost.tokens;
}

int64_t SideBySide::evaluations(int steps) const {
  const auto& rows = session_.family().branches;
  std::set<size_t> networks;
  for (const size_t branch : job_.branches) networks.insert(rows[branch].network);
  int64_t sum = 0;
  for (const size_t network : networks) {
    sum += models::runs_of_network(rows, network, job_.schedule(), steps);
  }
  return sum;
}

std::vector<BranchUse> SideBySide::uses() const {
  std::vector<BranchUse> all = first_.uses();
  if (second_ != nullptr) std::ranges::copy(second_->runs().uses(), std::back_inserter(all));
  return all;
}

std::vector<nn::Profile::KernelUse> SideBySide::kernels() const {
  std::vector<nn::Profile::KernelUse> all = profile_.kernels();
  if (second_ == nullptr) return all;
  for (auto& use : second_->profile().kernels()) {
    const auto key = [](const nn::Profile::KernelUse& of) {
      return std::tie(of.layer, of.op, of.kernel, of.fake);
    };
    const auto same = std::ranges::find(all, key(use), key);
    if (same == all.end()) {
      all.push_back(std::move(use));
    } else {
      add(same->time, use.time);
    }
  }
  return all;
}

std::map<std::string, nn::OpTime> SideBySide::ops() const {
  std::map<std::string, nn::OpTime> all = profile_.ops();
  if (second_ != nullptr) {
    for (const auto& [op, time] : second_->profile().ops()) add(all[op], time);
  }
  return all;
}

LinearUses SideBySide::linears_now() const {
  LinearUses all = profile_.linears();
  if (second_ != nullptr) add(all, second_->profile().linears());
  return all;
}

LinearUses SideBySide::linears() const {
  LinearUses all = first_.linears();
  if (second_ != nullptr) add(all, second_->runs().linears());
  return all;
}

// By the family's order, each network once: the same sum on any number of devices.
void SideBySide::add_fingerprints(weights::Fingerprint& sum) const {
  std::map<size_t, PartStore*> stores;
  const auto add_of = [&](size_t device, const BranchRuns& runs) {
    for (const size_t network : runs.networks()) {
      stores.emplace(network, session_.denoiser(device).stores.at(network).get());
    }
  };
  add_of(0, first_);
  if (second_ != nullptr) add_of(1, second_->runs());
  for (const auto& [network, store] : stores) sum.add(store->fingerprint());
}

}  // namespace octet::engine
