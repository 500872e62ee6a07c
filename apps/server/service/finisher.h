// A thread that compresses pictures while the next ones are computed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace octet::server {

class Finisher {
 public:
  using Task = std::function<void()>;  // catches what it throws

  Finisher();
  ~Finisher();  // after the last task
  Finisher(const Finisher&) = delete;
  Finisher& operator=(const Finisher&) = delete;

  // Tasks run in their order. Waits while too many wait: pictures take memory.
  void post(Task task);
  size_t waiting() const;

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace octet::server
