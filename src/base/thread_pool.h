// A fixed set of worker threads and one verb: run tasks 0..count-1, each exactly once.
//
// Tasks are handed out by an atomic counter, so a thread that is slowed down (a shared core, a
// page fault) takes fewer of them. The calling thread works too. A call from inside a task of the
// same pool runs inline on that thread: nested parallelism never creates more runnable threads than
// the pool has. A task may also run another pool, like any other caller; that pool's tasks must not
// call back into the first, which is busy until they end.
// Workers spin briefly after a job before they sleep, because one linear is several short jobs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fork.h"

namespace octet {

// Physical cores that this process may run on (its affinity mask and its control group's CPU quota
// count); at least 1. Hyper-threads of one core count once: they share the multiply units.
int physical_cores();

// Whole cores that the CPU quotas of the control groups allow, at least 1; 0 when there is no
// quota. Versions 1 and 2 are understood, and a group's parents count. The paths are for tests.
int quota_cores(const std::string& membership = "/proc/self/cgroup",
                const std::string& root = "/sys/fs/cgroup");

// More than this would not help, and starting thousands takes minutes.
int most_threads();

class ThreadPool {
 public:
  // threads <= 0 means physical_cores(). The calling thread is one of them. Throws Error for more
  // than most_threads().
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(crew_->workers.size()) + 1; }

  // Calls task(index, thread) for every index in [0, count); thread is in [0, threads()) and no two
  // running tasks share it, so it can index per-thread scratch memory. Returns when all are done.
  // The first exception that a task throws is rethrown here; the tasks not yet begun are dropped.
  // Throws Error in a child of the process that made the pool, where its threads are missing.
  void run(int64_t count, const std::function<void(int64_t index, int thread)>& task);

  // While `stop` is true, run() begins no further task and throws Cancelled: an op of a large
  // picture takes a second, its tasks take milliseconds. Null: never. To be called between jobs.
  void stop_when(const std::atomic<bool>* stop) { stopped_by_ = stop; }

 private:
  struct Job {
    int64_t count = 0;
    const std::function<void(int64_t, int)>* task = nullptr;
    std::atomic<int64_t> next{0};
    std::mutex error_mutex;
    std::exception_ptr error;
  };

  // Behind a pointer, since nothing of it may be destroyed in the child of a fork.
  struct Crew {
    std::vector<std::thread> workers;
    std::mutex run_mutex;                   // one job at a time; a second caller waits
    std::atomic<std::thread::id> caller{};  // of that job
    std::mutex mutex;
    std::condition_variable wake;
    Job* job = nullptr;
    std::atomic<uint64_t> generation{0};
    std::atomic<int> busy{0};
    bool stopping = false;
  };

  void worker_loop(int thread);
  void work(Job& job, int thread) const;
  void stop();
  // The calling thread's, if it is running a task of this pool; else -1.
  int number_here() const;

  std::unique_ptr<Crew> crew_ = std::make_unique<Crew>();
  const std::atomic<bool>* stopped_by_ = nullptr;
  uint32_t forks_ = fork_count();
};

}  // namespace octet
