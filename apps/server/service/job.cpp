#include "server/service/job.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace octet::server {

namespace {

// Ids of events from before a restart are smaller, so that a client who followed the job is told
// its end, whichever event it saw last.
constexpr uint64_t kBeforeRestart = uint64_t{1} << 32;

}  // namespace

std::string random_word() {
  constexpr char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  std::array<uint8_t, 26> random{};
  size_t have = 0;
  while (have < random.size()) {
    const ssize_t got = ::getrandom(random.data() + have, random.size() - have, 0);
    if (got > 0) have += static_cast<size_t>(got);
  }
  std::string word;
  for (const uint8_t each : random) word += kDigits[each % 32];
  return word;
}

double now_s() {
  using std::chrono::system_clock;
  return std::chrono::duration<double>(system_clock::now().time_since_epoch()).count();
}

// One who follows a job. The lock is held while events are told, so that they come one at a time.
class Job::Subscription : public std::enable_shared_from_this<Job::Subscription> {
 public:
  Subscription(uint64_t last, Tell tell) : last_(last), tell_(std::move(tell)) {}

  void deliver(const Job& job) {
    const std::lock_guard lock(mutex_);
    for (const JobEventPtr& event : job.events_after(last_)) {
      last_ = event->id;
      tell_(*event);
    }
  }

 private:
  std::mutex mutex_;
  uint64_t last_;
  Tell tell_;
};

Job::Job(std::string id, JobSpec spec)
    : id_(std::move(id)), ticket_(random_word()), spec_(std::move(spec)) {
  view_.id = id_;
  view_.created_at = now_s();
  append({.kind = JobEvent::Kind::queued});
}

std::shared_ptr<Job> Job::former(std::string id, JobSpec spec, double created_at, JobState state,
                                 std::optional<Failure> why) {
  auto job = std::make_shared<Job>(std::move(id), std::move(spec));
  job->view_.created_at = created_at;
  job->last_event_ = kBeforeRestart;
  job->end(state, std::move(why), nullptr);
  return job;
}

JobState Job::state() const {
  const std::lock_guard lock(mutex_);
  return view_.state;
}

JobView Job::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

size_t Job::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = spec_.picture.caption.size() + spec_.picture.negative.size() + spec_.prompt.size();
  for (const FinishedPicture& picture : view_.pictures) sum += picture.file->size();
  for (const JobEventPtr& event : events_) {
    if (event->preview.png != nullptr) sum += event->preview.png->size();
  }
  return sum;
}

// --- who follows it ---

std::shared_ptr<Job::Subscription> Job::subscribe(uint64_t last, Tell tell) {
  std::shared_ptr<Subscription> follower;
  {
    const std::lock_guard lock(mutex_);
    follower = std::make_shared<Subscription>(std::min(last, last_event_), std::move(tell));
    std::erase_if(followers_, [](const auto& each) { return each.expired(); });
    followers_.push_back(follower);
  }
  follower->deliver(*this);
  return follower;
}

bool Job::has_followers() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(followers_, [](const auto& each) { return !each.expired(); });
}

std::vector<JobEventPtr> Job::events_after(uint64_t last) const {
  const std::lock_guard lock(mutex_);
  std::vector<JobEventPtr> later;
  for (const JobEventPtr& event : events_) {
    if (event->id > last) later.push_back(event);
  }
  return later;
}

void Job::append(JobEvent event) {
  using Kind = JobEvent::Kind;
  const auto is_replaced = [&](const JobEventPtr& earlier) {
    switch (earlier->kind) {
      case Kind::queued: return event.kind == Kind::queued;
      case Kind::progress: return event.kind == Kind::progress || event.kind == Kind::ended;
      case Kind::preview:
        return event.kind == Kind::preview || event.kind == Kind::ended ||
               (event.kind == Kind::picture && event.picture.index == earlier->preview.image);
      default: return false;
    }
  };
  std::erase_if(events_, is_replaced);
  event.id = ++last_event_;
  events_.push_back(std::make_shared<const JobEvent>(std::move(event)));
}

void Job::wake() {
  std::vector<std::shared_ptr<Subscription>> followers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : followers_) {
      if (auto follower = each.lock()) followers.push_back(std::move(follower));
    }
  }
  for (const auto& follower : followers) follower->deliver(*this);
}

// --- who works on it ---

bool Job::start(const std::string& worker) {
  {
    const std::lock_guard lock(mutex_);
    if (view_.state != JobState::queued) return false;
    view_.state = JobState::running;
    view_.started_at = now_s();
    view_.worker = worker;
    append({.kind = JobEvent::Kind::started});
  }
  wake();
  return true;
}

void Job::tell_queued() {
  {
    const std::lock_guard lock(mutex_);
    if (view_.state != JobState::queued) return;
    append({.kind = JobEvent::Kind::queued});
  }
  wake();
}

void Job::tell(const RenderProgress& progress) {
  {
    const std::lock_guard lock(mutex_);
    if (view_.state != JobState::running) return;
    view_.progress = progress;
    append({.kind = JobEvent::Kind::progress, .progress = progress});
  }
  wake();
}

void Job::tell(FinishedPreview preview) {
  {
    const std::lock_guard lock(mutex_);
    if (view_.state != JobState::running) return;
    append({.kind = JobEvent::Kind::preview, .preview = std::move(preview)});
  }
  wake();
}

void Job::add(FinishedPicture picture) {
  {
    const std::lock_guard lock(mutex_);
    if (view_.state != JobState::running) return;
    view_.pictures.push_back(picture);
    append({.kind = JobEvent::Kind::picture, .picture = std::move(picture)});
  }
  wake();
}

bool Job::complete(std::shared_ptr<const RenderReport> report) {
  return end(JobState::completed, {}, std::move(report));
}

bool Job::fail(Failure failure) { return end(JobState::failed, std::move(failure), nullptr); }

bool Job::cancel() {
  // One that has begun ends when its worker has stopped.
  const bool ended = end(JobState::cancelled, {}, nullptr, /*only_if_queued=*/true);
  stop_.request_stop();
  return ended || !has_ended(state());
}

void Job::abort(Failure why) {
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = why;
  }
  end(JobState::failed, std::move(why), nullptr, /*only_if_queued=*/true);
  stop_.request_stop();
}

bool Job::is_cancelling() const {
  const std::lock_guard lock(mutex_);
  return stop_.stop_requested() && !aborted_;
}

bool Job::end_stopped() {
  std::optional<Failure> why;
  {
    const std::lock_guard lock(mutex_);
    why = aborted_;
  }
  return why ? fail(*why) : end(JobState::cancelled, {}, nullptr);
}

bool Job::end(JobState state, std::optional<Failure> failure,
              std::shared_ptr<const RenderReport> report, bool only_if_queued) {
  std::function<void(Job&)> ended;
  {
    const std::lock_guard lock(mutex_);
    if (has_ended(view_.state)) return false;
    if (only_if_queued && view_.state != JobState::queued) return false;
    view_.state = state;
    view_.ended_at = now_s();
    view_.failure = std::move(failure);
    view_.report = report;
    ended = std::exchange(on_end_, nullptr);
    if (report != nullptr) {
      append({.kind = JobEvent::Kind::report, .report = std::move(report)});
    }
    append({.kind = JobEvent::Kind::ended});
  }
  if (ended) ended(*this);  // who waits for the event may count on what this does
  wake();
  return true;
}

void Job::on_end(std::function<void(Job&)> ended) { on_end_ = std::move(ended); }

}  // namespace octet::server
