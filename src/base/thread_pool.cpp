#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/per_thread.h"

namespace octet {
namespace {

// How long a worker spins for the next job before it sleeps: about 20 us, a little more than the
// pause between quantizing the activations and multiplying them.
constexpr int kSpins = 2000;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether there is memory for one more thread: what starts one says "try again" instead.
bool has_room_for_a_stack() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  void* stack = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return false;
  ::munmap(stack, bytes);
  return true;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// From "150000 100000": microseconds of CPU time per period. No quota is "max" in version 2 of
// control groups and -1 in version 1.
double parse_quota(const std::string& text) {
  std::istringstream words(text);
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return kNoQuota;
  return quota / period;
}

// The smallest quota of `group` and its parents under `mount`. A container often sees its own group
// mounted as the root while `group` is its name outside; missing folders are skipped, so the root
// remains.
double smallest_quota(const std::string& mount, const std::string& group) {
  // A group outside the namespace is named "/../other", and must stay below the mount.
  std::vector<std::string> names;
  std::istringstream parts(group);
  for (std::string name; std::getline(parts, name, '/');) {
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (!name.empty() && name != ".") {
      names.push_back(name);
    }
  }
  for (double smallest = kNoQuota;; names.pop_back()) {
    std::string folder = mount + "/";
    for (const std::string& name : names) folder += name + "/";
    smallest = std::min({smallest, parse_quota(first_line(folder + "cpu.max")),
                         parse_quota(first_line(folder + "cpu.cfs_quota_us") + " " +
                                     first_line(folder + "cpu.cfs_period_us"))});
    if (names.empty()) return smallest;
  }
}

// Asks with ever larger sets: the kernel refuses one that is too small for the machine, and
// cpu_set_t alone ends at 1024 CPUs.
std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (size_t sets = 1; sets <= 1024; sets *= 2) {
    std::vector<cpu_set_t> allowed(sets);  // value-initialized: empty sets
    const size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, allowed.data()) == 0) {
      for (size_t cpu = 0; cpu < bytes * 8; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, allowed.data())) cpus.push_back(static_cast<int>(cpu));
      }
      break;
    }
    if (errno != EINVAL) break;
  }
  return cpus;
}

}  // namespace

int quota_cores(const std::string& membership, const std::string& root) {
  // Lines "0::/group" (version 2) and "4:cpu,cpuacct:/group" (version 1, mounted by controller).
  double smallest = std::min(smallest_quota(root, ""), smallest_quota(root + "/cpu", ""));
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      smallest = std::min(smallest, smallest_quota(root, group));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      smallest = std::min({smallest, smallest_quota(root + "/cpu", group),
                           smallest_quota(root + "/" + controllers, group)});
    }
  }
  // A quota beyond any machine limits nothing, and might not fit an int.
  if (smallest > 1e6) return 0;
  return std::max(1, static_cast<int>(smallest));
}

int physical_cores() {
  std::set<std::pair<std::string, std::string>> cores;  // (package, core) pairs
  for (const int cpu : allowed_cpus()) {
    const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::string core = first_line(base + "core_id");
    if (core.empty()) core = "cpu" + std::to_string(cpu);  // no topology: each CPU is a core
    cores.emplace(first_line(base + "physical_package_id"), core);
  }
  int count = cores.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                            : static_cast<int>(cores.size());
  if (const int quota = quota_cores(); quota > 0) count = std::min(count, quota);
  return std::max(1, count);
}

int most_threads() {
  constexpr int kAlwaysAllowed = 64, kPerHardwareThread = 4;
  const auto hardware = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(kAlwaysAllowed, kPerHardwareThread * hardware);
}

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = physical_cores();
  check(threads <= most_threads(), "cpu: {} threads, expected at most {} on this machine", threads,
        most_threads());
  try {
    crew_->workers.reserve(static_cast<size_t>(threads - 1));
    for (int thread = 1; thread < threads; ++thread) {
      const auto work = [this, thread] { worker_loop(thread); };
      try {
        crew_->workers.emplace_back(work);
      } catch (const std::system_error&) {  // "try again": perhaps memory lacked for a moment
        crew_->workers.emplace_back(work);
      }
    }
  } catch (const std::bad_alloc&) {
    stop();  // no destructor runs now, and a thread that nobody joins ends the program
    throw;
  } catch (const std::exception& error) {  // no thread (std::system_error)
    stop();
    const Sentence why =
        sentence("cpu: only {} of {} threads could be started: {}; use fewer threads",
                 this->threads(), threads, error.what());
    if (!has_room_for_a_stack()) throw OutOfMemory(why);
    throw Error(why);
  }
}

ThreadPool::~ThreadPool() {
  if (forks_ == fork_count()) {
    stop();
  } else {
    crew_.release();  // it is left as it is
  }
}

void ThreadPool::stop() {
  {
    const std::lock_guard lock(crew_->mutex);
    crew_->stopping = true;
    crew_->generation.fetch_add(1);
  }
  crew_->wake.notify_all();
  for (auto& worker : crew_->workers) worker.join();
}

void ThreadPool::work(Job& job, int thread) const {
  for (;;) {
    const int64_t index = job.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= job.count) break;
    try {
      if (stopped_by_ != nullptr && stopped_by_->load(std::memory_order_relaxed)) {
        throw Cancelled("stopped on request");
      }
      (*job.task)(index, thread);
    } catch (...) {
      const std::lock_guard lock(job.error_mutex);
      if (!job.error) job.error = std::current_exception();
      job.next.store(job.count);
    }
  }
}

// By identity rather than by a thread_local: see per_thread.h.
int ThreadPool::number_here() const {
  const std::thread::id here = std::this_thread::get_id();
  if (crew_->caller.load(std::memory_order_relaxed) == here) return 0;
  const auto& workers = crew_->workers;
  const auto found = std::find_if(workers.begin(), workers.end(),
                                  [&](const std::thread& each) { return each.get_id() == here; });
  return found == workers.end() ? -1 : static_cast<int>(found - workers.begin()) + 1;
}

void ThreadPool::run(int64_t count, const std::function<void(int64_t, int)>& task) {
  if (count <= 0) return;
  check(forks_ == fork_count(),
        "this process was forked after its threads were started, and lacks them; open devices and "
        "load models in the child");
  if (const int number = number_here(); number >= 0) {  // nested: inline
    for (int64_t index = 0; index < count; ++index) task(index, number);
    return;
  }
  const std::lock_guard one_job(crew_->run_mutex);
  crew_->caller = std::this_thread::get_id();
  Job job;
  job.count = count;
  job.task = &task;
  if (count > 1 && !crew_->workers.empty()) {
    {
      const std::lock_guard lock(crew_->mutex);
      crew_->job = &job;
      crew_->busy.store(static_cast<int>(crew_->workers.size()));
      crew_->generation.fetch_add(1, std::memory_order_release);
    }
    crew_->wake.notify_all();
  }
  work(job, 0);
  // Workers that woke up late still hold a pointer to `job`, so wait for every one of them.
  for (int spin = 0; crew_->busy.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
  crew_->caller = std::thread::id();
  if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::worker_loop(int thread) {
  prepare_to_throw();
  uint64_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (crew_->generation.load(std::memory_order_acquire) != seen) break;
      pause_cpu();
    }
    Job* job = nullptr;
    {
      std::unique_lock lock(crew_->mutex);
      crew_->wake.wait(lock, [&] { return crew_->generation.load() != seen; });
      seen = crew_->generation.load();
      if (crew_->stopping) return;
      job = crew_->job;
    }
    work(*job, thread);
    crew_->busy.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace octet
