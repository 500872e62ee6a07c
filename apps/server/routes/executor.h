// A few threads for what must not be done on those that serve all connections: reading bodies,
// checking requests, building large answers.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octet::server {

class Executor {
 public:
  using Task = std::function<void()>;  // catches what it throws

  Executor(int threads, size_t most_waiting);
  ~Executor() { stop(); }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // New work: false if too much waits.
  bool offer(Task task);
  // The end of work that was accepted: is never turned away.
  void post(Task task);
  // Waits for the tasks that run; those that wait are dropped.
  void stop();

 private:
  void run();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace octet::server
