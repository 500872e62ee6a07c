#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <utility>

namespace octet {
namespace {

// How long a worker looks for the next job before it sleeps: about 20 us, a little more than the
// pause between quantizing the activations and multiplying them.
constexpr int kSpins = 2000;

// The pool's number of the thread that runs a task now, -1 outside of tasks.
thread_local int running_as = -1;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// "max 100000" or "150000 100000" in cpu.max of the control group; 0 when there is no quota.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  try {
    return std::max(1, static_cast<int>(std::floor(std::stod(quota) / period)));
  } catch (const std::exception&) {
    return 0;
  }
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::set<std::pair<std::string, std::string>> cores;  // (package, core) pairs
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      std::string core = first_line(base + "core_id");
      if (core.empty()) core = "cpu" + std::to_string(cpu);  // no topology: each CPU is a core
      cores.emplace(first_line(base + "physical_package_id"), core);
    }
  }
  int count = cores.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                            : static_cast<int>(cores.size());
  if (const int quota = quota_cores(); quota > 0) count = std::min(count, quota);
  return std::max(1, count);
}

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = physical_cores();
  workers_.reserve(static_cast<size_t>(threads - 1));
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { worker_loop(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::work(Job& job, int thread) {
  running_as = thread;
  for (;;) {
    const int64_t index = job.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= job.count) break;
    try {
      (*job.task)(index, thread);
    } catch (...) {
      const std::lock_guard lock(job.error_mutex);
      if (!job.error) job.error = std::current_exception();
      job.next.store(job.count);
    }
  }
  running_as = -1;
}

void ThreadPool::run(int64_t count, const std::function<void(int64_t, int)>& task) {
  if (count <= 0) return;
  if (running_as >= 0) {  // nested: inline, under the number of the thread that asks
    for (int64_t index = 0; index < count; ++index) task(index, running_as);
    return;
  }
  const std::lock_guard one_job(run_mutex_);
  Job job;
  job.count = count;
  job.task = &task;
  if (count > 1 && !workers_.empty()) {
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      busy_.store(static_cast<int>(workers_.size()));
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
  }
  work(job, 0);
  // Workers that woke up late still hold a pointer to `job`, so wait for every one of them.
  for (int spin = 0; busy_.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
  if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::worker_loop(int thread) {
  uint64_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (generation_.load(std::memory_order_acquire) != seen) break;
      pause_cpu();
    }
    Job* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      seen = generation_.load();
      if (stopping_) return;
      job = job_;
    }
    work(*job, thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace octet
