#include "server/service/service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/service/failures.h"
#include "server/service/keys.h"
#include "server/service/service_state.h"

namespace octet::server {

Service::Service(ServiceOptions options) : state_(std::make_unique<State>(std::move(options))) {}

Service::~Service() = default;

const ServiceOptions& Service::options() const { return state_->options; }

bool Service::is_ready() const { return why_not_ready().empty(); }

bool Service::is_draining() const {
  const std::lock_guard lock(state_->mutex);
  return state_->draining;
}

std::string Service::why_not_ready() const {
  if (is_draining()) return "the server is about to end";
  if (has_failed()) return "the model could not be loaded; the server's log has the reason";
  for (const auto& worker : state_->workers) {
    if (worker->is_loaded()) return "";
  }
  return "the model is being loaded";
}

bool Service::has_failed() const {
  return std::ranges::all_of(state_->workers,
                             [](const auto& worker) { return worker->has_failed(); });
}

std::string Service::failure() const {
  for (const auto& worker : state_->workers) {
    if (worker->has_failed()) return worker->failure();
  }
  return "";
}

EngineInfo Service::info() const { return state_->loaded_engine().info(); }

std::vector<WorkerState> Service::workers() const {
  std::vector<WorkerState> states;
  for (const auto& worker : state_->workers) {
    WorkerState state{.device = worker->device(),
                      .loaded = worker->is_loaded(),
                      .busy = false,
                      .failed = worker->has_failed(),
                      .engine = worker->engine().state()};
    state.busy = state.engine.busy;
    states.push_back(std::move(state));
  }
  return states;
}

ServiceCounts Service::counts() const {
  double joules = 0;
  for (const auto& worker : state_->workers) joules += worker->engine().state().joules;
  const std::lock_guard lock(state_->mutex);
  ServiceCounts counts = state_->counts;
  counts.joules = joules;
  counts.queued = state_->queue.size();
  counts.running = static_cast<int>(state_->running.size());
  counts.kept = static_cast<int>(state_->ended_count);
  counts.kept_bytes = state_->ended_bytes;
  return counts;
}

// --- jobs ---

std::shared_ptr<Job> Service::submit(JobSpec asked) {
  State& state = *state_;
  try {
    {
      const std::lock_guard lock(state.mutex);
      if (auto job = state.earlier(asked)) return job;
      if (state.draining) {
        throw Refused{{.status = 503,
                       .message = "the server is about to end; ask again",
                       .code = "draining",
                       .retry_after_s = 10}};
      }
      state.refuse_if_full(asked);
    }
    const auto job =
        std::make_shared<Job>(state.options.name + "-" + random_word(), state.read(asked));
    return state.add(job);
  } catch (const Refused&) {
    const std::lock_guard lock(state.mutex);
    ++state.counts.rejected;
    throw;
  }
}

std::shared_ptr<Job> Service::find(const std::string& id, const std::string& key) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->jobs.find(id);
  if (at == state_->jobs.end() || at->second->spec().key != key) return nullptr;
  return at->second;
}

std::shared_ptr<Job> Service::find_by_ticket(const std::string& id,
                                             const std::string& ticket) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->jobs.find(id);
  if (at == state_->jobs.end() || !same_key(at->second->ticket(), ticket)) return nullptr;
  return at->second;
}

std::vector<std::shared_ptr<Job>> Service::jobs_of(const std::string& key) const {
  std::vector<std::pair<double, std::shared_ptr<Job>>> found;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [id, job] : state_->jobs) {
      if (job->spec().key == key) found.emplace_back(0, job);
    }
  }
  for (auto& [created_at, job] : found) created_at = job->view().created_at;
  std::ranges::sort(found, std::greater<>(), [](const auto& each) { return each.first; });
  std::vector<std::shared_ptr<Job>> jobs;
  for (auto& each : found) jobs.push_back(std::move(each.second));
  return jobs;
}

void Service::forget(const Job& job) {
  if (!has_ended(job.state())) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->forget(job.id());
  }
  state_->note_forgotten(job);
}

int Service::position(const Job& job) const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.position(job);
}

double Service::eta_s(const Job& job) const {
  const JobState now = job.state();
  const std::lock_guard lock(state_->mutex);
  if (now == JobState::running) return state_->seconds_left(job);
  return state_->queue.position(job) > 0 ? state_->seconds_until(job) : -1;
}

double Service::retry_after_s() const {
  const std::lock_guard lock(state_->mutex);
  return state_->retry_after_s();
}

void Service::drain(double seconds) {
  State& state = *state_;
  {
    std::unique_lock lock(state.mutex);
    state.draining = true;
    state.changed.notify_all();
    state.changed.wait_for(lock, std::chrono::duration<double>(seconds),
                           [&] { return state.queue.size() == 0 && state.running.empty(); });
  }
  state.end_all();
}

}  // namespace octet::server
