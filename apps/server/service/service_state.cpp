#include "server/service/service_state.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/service/failures.h"

namespace octet::server {
namespace {

constexpr size_t kMostKept = 10000;               // jobs that have ended
constexpr size_t kLongJournal = size_t{8} << 20;  // bytes
constexpr auto kSweep = std::chrono::seconds(1);

}  // namespace

Service::State::State(ServiceOptions given) : options(std::move(given)) {
  if (!options.state_folder.empty()) restore();
  WorkerHooks hooks{.next = [this] { return next(); },
                    .upcoming = [this] { return upcoming(); },
                    .changed =
                        [this] {
                          // A thread that has just looked is either asleep or sees the change.
                          { const std::lock_guard lock(mutex); }
                          changed.notify_all();
                          const bool none = std::ranges::all_of(
                              workers, [](const auto& worker) { return worker->has_failed(); });
                          if (none) fail_waiting(nothing_loaded());
                        },
                    .step =
                        [this](double seconds) {
                          const std::lock_guard lock(mutex);
                          ++counts.steps;
                          counts.step_seconds += seconds;
                        },
                    .rendered =
                        [this](const Job& job, const RenderReport& report, double seconds) {
                          const std::lock_guard lock(mutex);
                          counts.rendering.add(seconds);
                          counts.pictures += static_cast<uint64_t>(job.spec().picture.images);
                          const LinearCount& linears = report.linears;
                          counts.int8_linears = static_cast<uint64_t>(linears.int8);
                          counts.all_linears = static_cast<uint64_t>(
                              linears.int8 + linears.protected_ + linears.floating + linears.fake);
                          note_time(job.spec(), seconds);
                        },
                    .log = options.log};
  for (const std::string& device : options.devices) {
    WorkerOptions made{
        .model = options.model, .warm_up = options.warm_up, .longest_s = options.limits.seconds};
    made.model.device = device;
    workers.push_back(std::make_unique<Worker>(made, hooks));
  }
  for (const auto& worker : workers) worker->start();
  sweeper = std::thread([this] {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kSweep, [this] { return ending; })) {
      lock.unlock();
      sweep();
      lock.lock();
    }
  });
}

Service::State::~State() {
  end_all();
  // Each asks about all of them when its loading ends.
  for (const auto& worker : workers) worker->end();
  for (const auto& worker : workers) worker->join();
  workers.clear();
  sweeper.join();
}

void Service::State::fail_waiting(const Failure& why) {
  std::vector<std::shared_ptr<Job>> waiting;
  {
    const std::lock_guard lock(mutex);
    while (auto job = queue.pop()) waiting.push_back(std::move(job));
  }
  for (const auto& job : waiting) job->fail(why);
}

// Nothing is taken any more; what has not ended is told so.
void Service::State::end_all() {
  std::vector<std::shared_ptr<Job>> begun;
  {
    const std::lock_guard lock(mutex);
    draining = ending = true;
    for (const auto& [id, job] : running) begun.push_back(job);
  }
  changed.notify_all();
  fail_waiting(server_ended());
  for (const auto& job : begun) job->abort(server_ended());
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return running.empty(); });
}

// --- workers ---

std::shared_ptr<Job> Service::State::next() {
  std::shared_ptr<Job> job;
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return ending || queue.size() > 0; });
    if (ending) return nullptr;
    job = queue.pop();
    running[job->id()] = job;
    counts.waiting.add(now_s() - job->view().created_at);
  }
  tell_places();
  return job;
}

std::shared_ptr<Job> Service::State::upcoming() {
  const std::lock_guard lock(mutex);
  return queue.size() > 0 ? queue.order().front() : nullptr;
}

// To those who watch: they have moved up.
void Service::State::tell_places() {
  std::vector<std::shared_ptr<Job>> waiting;
  {
    const std::lock_guard lock(mutex);
    waiting = queue.order();
  }
  for (const auto& job : waiting) {
    if (job->has_followers()) job->tell_queued();
  }
}

const Engine& Service::State::loaded_engine() const {
  for (const auto& worker : workers) {
    if (worker->is_loaded()) return worker->engine();
  }
  const bool none =
      std::ranges::all_of(workers, [](const auto& worker) { return worker->has_failed(); });
  throw Refused{none ? nothing_loaded() : still_loading()};
}

// --- the table of jobs ---

std::shared_ptr<Job> Service::State::add(const std::shared_ptr<Job>& job) {
  job->on_end([this](Job& ended_job) { note_end(ended_job); });
  const JobSpec& spec = job->spec();
  const double work = work_of(spec);
  {
    const std::lock_guard lock(mutex);
    // Between the first look and now, others came.
    if (auto same = earlier(spec)) return same;
    refuse_if_full(spec);
    jobs[job->id()] = job;
    if (!spec.idempotency_key.empty()) idempotent[{spec.key, spec.idempotency_key}] = job;
    ++counts.submitted;
  }
  try {
    note_in_journal(*job);
  } catch (const Error& error) {
    options.log(log::Level::warning, error.what(), spec.request_id);
    const Failure why{.status = 503,
                      .message = "the server cannot note the job on its disk; ask again later",
                      .code = "journal",
                      .retry_after_s = 60};
    job->fail(why);  // somebody may follow it by now
    const std::lock_guard lock(mutex);
    forget(job->id());
    throw Refused{why};
  }
  bool is_too_late = false;
  {
    const std::lock_guard lock(mutex);
    is_too_late = ending;
    // Whoever saw it in a list may have cancelled it already.
    if (!ending && !has_ended(job->state())) queue.push(job, work, weight_of(spec.key));
  }
  changed.notify_all();
  if (is_too_late) job->fail(server_ended());
  return job;
}

void Service::State::note_end(Job& job) {
  const JobView view = job.view();
  try {
    note_in_journal(job);
  } catch (const Error& error) {
    options.log(log::Level::warning, error.what(), job.spec().request_id);
  }
  {
    const std::lock_guard lock(mutex);
    queue.remove(job);
    running.erase(job.id());
    const auto known = jobs.find(job.id());
    if (known != jobs.end()) keep(known->second);
    if (view.state == JobState::completed) ++counts.completed;
    if (view.state == JobState::failed) ++counts.failed;
    if (view.state == JobState::cancelled) ++counts.cancelled;
  }
  changed.notify_all();
  if (options.ended) options.ended(job);
  sweep();
}

void Service::State::keep(const std::shared_ptr<Job>& job) {
  const size_t bytes = job->bytes();
  Kept& kept = ended[job->spec().key];
  kept.jobs.push_back({job, bytes});
  kept.bytes += bytes;
  ++ended_count;
  ended_bytes += bytes;
}

void Service::State::forget(const std::string& id) {
  const auto at = jobs.find(id);
  if (at == jobs.end()) return;
  const JobSpec& spec = at->second->spec();
  if (const auto own = ended.find(spec.key); own != ended.end()) {
    Kept& kept = own->second;
    const auto is_it = [&](const Ended& each) { return each.job == at->second; };
    if (const auto it = std::ranges::find_if(kept.jobs, is_it); it != kept.jobs.end()) {
      kept.bytes -= it->bytes;
      ended_bytes -= it->bytes;
      --ended_count;
      kept.jobs.erase(it);
    }
    if (kept.jobs.empty()) ended.erase(own);
  }
  // Its key may have been used again, since it failed.
  const auto same = idempotent.find({spec.key, spec.idempotency_key});
  if (same != idempotent.end() && same->second.lock() == at->second) idempotent.erase(same);
  jobs.erase(at);
}

void Service::State::sweep() {
  const double oldest = now_s() - options.keep_s;
  const std::lock_guard lock(mutex);
  std::vector<std::string> expired;
  for (const auto& [key, kept] : ended) {
    for (const Ended& each : kept.jobs) {
      if (each.job->view().ended_at >= oldest) break;
      expired.push_back(each.job->id());
    }
  }
  for (const std::string& id : expired) forget(id);
  // A key's only one is spared as long as others can go: its client may not have seen it yet.
  const auto forget_oldest = [&](size_t limit, auto amount) {
    std::pair<bool, double> lowest;
    const Job* first = nullptr;
    for (const auto& [key, kept] : ended) {
      const bool is_spared = kept.jobs.size() == 1 || amount(kept) <= limit / ended.size();
      const Job& job = *kept.jobs.front().job;
      const std::pair<bool, double> rank(is_spared, job.view().ended_at);
      if (first != nullptr && rank >= lowest) continue;
      lowest = rank;
      first = &job;
    }
    forget(std::string(first->id()));
  };
  while (ended_bytes > options.keep_bytes) {
    forget_oldest(options.keep_bytes, [](const Kept& kept) { return kept.bytes; });
  }
  while (ended_count > kMostKept) {
    forget_oldest(kMostKept, [](const Kept& kept) { return kept.jobs.size(); });
  }
}

// --- the journal ---

void Service::State::restore() {
  journal = std::make_unique<Journal>(options.state_folder);
  std::vector<JournalEntry> kept;
  for (JournalEntry entry : journal->former()) {
    if (std::max(entry.created_at, entry.ended_at) + options.keep_s < now_s()) continue;
    Failure why = lost_by_restart();
    // One that failed before, and not because the server ended.
    const bool has_own_reason = entry.state == JobState::failed && !entry.error.empty() &&
                                entry.error != why.message && entry.error != server_ended().message;
    if (has_own_reason) why = {.message = entry.error};
    const bool is_cancelled = entry.state == JobState::cancelled;
    JobSpec spec;
    spec.key = entry.key;
    entry.state = is_cancelled ? JobState::cancelled : JobState::failed;
    entry.error = is_cancelled ? "" : why.message;
    const auto job = Job::former(entry.id, std::move(spec), entry.created_at, entry.state,
                                 is_cancelled ? std::nullopt : std::optional(why));
    jobs[entry.id] = job;
    keep(job);
    kept.push_back(std::move(entry));
  }
  journal->rewrite(kept);
}

void Service::State::note_forgotten(const Job& job) {
  if (journal == nullptr) return;
  const std::lock_guard lock(journal_mutex);
  try {
    journal->note_forgotten(job.id());
  } catch (const Error& error) {
    options.log(log::Level::warning, error.what(), job.spec().request_id);
  }
}

void Service::State::note_in_journal(Job& job) {
  if (journal == nullptr) return;
  const std::lock_guard lock(journal_mutex);
  const JobView view = job.view();
  has_ended(view.state) ? journal->note_ended(view) : journal->note_taken(job);
  if (journal->bytes() < kLongJournal) return;
  std::vector<JournalEntry> entries;
  {
    const std::lock_guard table(mutex);
    for (const auto& [id, each] : jobs) {
      const JobView now = each->view();
      entries.push_back({.id = id,
                         .key = each->spec().key,
                         .created_at = now.created_at,
                         .ended_at = now.ended_at,
                         .state = has_ended(now.state) ? now.state : JobState::queued,
                         .error = now.failure ? now.failure->message : ""});
    }
  }
  try {
    journal->rewrite(entries);
  } catch (const Error& error) {  // what was noted stands in the long one
    options.log(log::Level::warning, error.what(), job.spec().request_id);
  }
}

}  // namespace octet::server
