#include "engine/second_device.h"

#include <utility>

#include "base/start_threads.h"

namespace octet::engine {

SecondDevice::SecondDevice(Session& session, Denoiser& device, const Job& job, Backend& home)
    : home_(home),
      profile_(device.backend()),
      ctx_(device.ctx),
      runs_(session, device, job, ctx_, profile_),
      z_(ctx_.matrix(job.grid.tokens(), job.model->latent_channels)) {
  ctx_.profile = &profile_;
  latent_.resize(bytes_of(ctx_.dtype, z_.view().shape));
  for (const size_t branch : runs_.branches()) {
    velocities_.emplace(branch, ctx_.matrix(z_.row_count(), z_.column_count()));
    results_[branch].resize(latent_.size());
  }
}

void SecondDevice::prepare(const BranchTexts& texts, const OnRenderProgress& progress) {
  runs_.prepare(texts, progress);
}

// The latent is complete: the sampler has waited for it. If no thread can be started, the branches
// run one after the other.
void SecondDevice::begin(const ConstTensorView& z, int step, std::vector<BranchOut> branches) {
  branches_ = std::move(branches);
  failure_ = nullptr;
  home_.copy_to_host(latent_.data(), z.data, latent_.size());
  const auto work = [this, step]() noexcept {
    try {
      evaluate(step);
    } catch (...) {
      failure_ = std::current_exception();
    }
  };
  thread_ = start_threads(1, work);
  if (thread_.empty()) work();
}

void SecondDevice::evaluate(int step) {
  ctx_.backend.copy_to_device(z_.view().data, latent_.data(), latent_.size());
  std::vector<BranchOut> here;
  for (const BranchOut& each : branches_) {
    here.push_back({each.branch, velocities_.at(each.branch)});
  }
  recorded_ = runs_.velocities(z_, step, here);
  for (const BranchOut& each : here) {
    ctx_.backend.copy_to_host(results_.at(each.branch).data(), each.out.data, latent_.size());
  }
}

void SecondDevice::wait() {
  for (std::thread& thread : thread_) thread.join();
  thread_.clear();
}

bool SecondDevice::end() {
  wait();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  for (const BranchOut& each : branches_) {
    home_.copy_to_device(each.out.data, results_.at(each.branch).data(), latent_.size());
  }
  return recorded_;
}

}  // namespace octet::engine
