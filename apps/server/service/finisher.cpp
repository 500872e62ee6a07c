#include "server/service/finisher.h"

#include <utility>

namespace octet::server {
namespace {

constexpr size_t kMostWaiting = 16;

}  // namespace

Finisher::Finisher() : thread_([this] { run(); }) {}

Finisher::~Finisher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Finisher::post(Task task) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.size() < kMostWaiting; });
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

size_t Finisher::waiting() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void Finisher::run() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    changed_.notify_all();
    task();
  }
}

}  // namespace octet::server
