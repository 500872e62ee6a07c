#include "server/routes/follower.h"

#include <chrono>
#include <exception>
#include <utility>

#include "server/routes/error_objects.h"

namespace octet::server {

bool Follower::has_events() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty() || !has_ended(job_->state());
}

void Follower::start(Take take) {
  const std::lock_guard lock(mutex_);
  take_ = std::move(take);
  wake();
}

void Follower::leave() {
  std::shared_ptr<Job::Subscription> subscription;
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
    subscription = std::move(subscription_);
  }
  const std::lock_guard lock(all_.mutex_);
  all_.all_.erase(shared_from_this());
}

void Follower::tell(const JobEvent& event) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(event);
  wake();
}

void Follower::wake() {
  if (left_ || draining_ || take_ == nullptr || waiting_.empty()) return;
  draining_ = true;
  all_.executor_.post([self = shared_from_this()] { self->drain(); });
}

void Follower::drain() {
  while (true) {
    JobEvent event;
    {
      const std::lock_guard lock(mutex_);
      draining_ = !waiting_.empty() && !left_;
      if (!draining_) return;
      event = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      take_(event);
      if (event.kind != JobEvent::Kind::ended) continue;
    } catch (const std::exception& error) {
      all_.report_(error.what());
    } catch (const Refused& refused) {
      all_.report_(refused.failure.message);
    }
    leave();
  }
}

std::shared_ptr<Follower> Followers::follow(std::shared_ptr<Job> job, uint64_t last) {
  const auto follower = std::make_shared<Follower>(*this, std::move(job));
  {
    const std::lock_guard lock(mutex_);
    all_.insert(follower);
  }
  auto subscription =
      follower->job()->subscribe(last, [weak = std::weak_ptr(follower)](const JobEvent& event) {
        if (const auto alive = weak.lock()) alive->tell(event);
      });
  const std::lock_guard lock(follower->mutex_);
  if (!follower->left_) follower->subscription_ = std::move(subscription);
  return follower;
}

void Followers::clear() {
  std::set<std::shared_ptr<Follower>> all;
  {
    const std::lock_guard lock(mutex_);
    all = all_;
  }
  for (const auto& each : all) each->leave();
}

KeepAlive::KeepAlive(double seconds) : seconds_(seconds), thread_([this] { run(); }) {}

KeepAlive::~KeepAlive() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void KeepAlive::add(const std::shared_ptr<http::Stream>& stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
}

void KeepAlive::run() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> pause(seconds_);
  while (!changed_.wait_for(lock, pause, [this] { return ending_; })) {
    std::erase_if(streams_, [](const auto& each) { return each.expired(); });
    for (const auto& each : streams_) {
      if (const auto stream = each.lock()) stream->write(": keep-alive\n\n");
    }
  }
}

}  // namespace octet::server
