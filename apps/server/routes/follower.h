// Follows a job for one exchange. Its events are taken one by one on the executor, so that no
// worker waits for whoever looks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/http/exchange.h"
#include "server/routes/executor.h"
#include "server/service/job.h"

namespace octet::server {

class Followers;

class Follower : public std::enable_shared_from_this<Follower> {
 public:
  using Take = std::function<void(const JobEvent&)>;

  Follower(Followers& all, std::shared_ptr<Job> job) : all_(all), job_(std::move(job)) {}

  const std::shared_ptr<Job>& job() const { return job_; }
  // False: the job has ended, and the one who follows has been told everything before.
  bool has_events();
  // From here on events are taken, those that have come before first. What `take` throws ends it.
  void start(Take take);
  // No further events; the job goes on.
  void leave();

 private:
  friend class Followers;
  void tell(const JobEvent& event);
  void wake();  // under the lock
  void drain();

  Followers& all_;
  const std::shared_ptr<Job> job_;
  std::mutex mutex_;
  std::deque<JobEvent> waiting_;
  Take take_;
  bool draining_ = false, left_ = false;
  std::shared_ptr<Job::Subscription> subscription_;
};

// All who follow jobs at the moment; keeps them until they leave or have been told the end.
class Followers {
 public:
  using Report = std::function<void(const std::string& why)>;  // of an answer that failed

  Followers(Executor& executor, Report report) : executor_(executor), report_(std::move(report)) {}

  // Events after `last`, from Follower::start() on.
  std::shared_ptr<Follower> follow(std::shared_ptr<Job> job, uint64_t last);
  void clear();  // all leave

 private:
  friend class Follower;
  Executor& executor_;
  const Report report_;
  std::mutex mutex_;
  std::set<std::shared_ptr<Follower>> all_;
};

// Writes a comment to all streams from time to time: proxies close connections that are silent.
class KeepAlive {
 public:
  explicit KeepAlive(double seconds);
  ~KeepAlive();

  void add(const std::shared_ptr<http::Stream>& stream);  // until it is destroyed

 private:
  void run();

  const double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<http::Stream>> streams_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace octet::server
