// base: the thread pool and the number of cores it takes.
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "formats/temporary_folder.h"

// There in a process that a sanitizer watches, whether this file was compiled for one or not.
extern "C" __attribute__((weak)) void __asan_init();
extern "C" __attribute__((weak)) void __tsan_init();

namespace octet {
namespace {

TEST(ThreadPoolTest, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      pool.run(count, [&](int64_t index, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++runs[static_cast<size_t>(index)];
      });
      for (const auto& run : runs) EXPECT_EQ(run, 1);
    }
  }
}

TEST(ThreadPoolTest, NoTwoRunningTasksShareAThreadNumber) {
  ThreadPool pool(4);
  std::atomic<int> inside[4] = {};
  pool.run(2000, [&](int64_t, int thread) {
    EXPECT_EQ(++inside[thread], 1);
    --inside[thread];
  });
}

TEST(ThreadPoolTest, NestedRunsStayOnTheirThread) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.run(10, [&](int64_t, int outer) {
    pool.run(10, [&](int64_t, int inner) {
      EXPECT_EQ(inner, outer);
      ++total;
    });
  });
  EXPECT_EQ(total, 100);
}

TEST(ThreadPoolTest, AnExceptionReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(100, [](int64_t index, int) { check(index != 37, "task {}", index); }),
               Error);
  std::atomic<int> total{0};
  pool.run(100, [&](int64_t, int) { ++total; });
  EXPECT_EQ(total, 100);
}

TEST(ThreadPoolTest, DefaultIsThePhysicalCores) {
  EXPECT_GE(physical_cores(), 1);
  EXPECT_LE(physical_cores(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_EQ(ThreadPool(0).threads(), physical_cores());
}

TEST(ThreadPoolTest, TwoCallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> total{0};
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) pool.run(20, [&](int64_t, int) { ++total; });
  });
  for (int i = 0; i < 50; ++i) pool.run(20, [&](int64_t, int) { ++total; });
  other.join();
  EXPECT_EQ(total, 2000);
}

// The inner pool is larger, smaller and equal: its thread numbers are its own each time, and the
// outer pool's number is back afterwards.
TEST(ThreadPoolTest, ATaskRunsAnotherPoolUnderThatPoolsNumbers) {
  ThreadPool outer(3);
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool inner(threads);
    std::vector<std::atomic<int>> inside(static_cast<size_t>(threads));
    std::atomic<int> total{0};
    outer.run(12, [&](int64_t, int number) {
      inner.run(20, [&](int64_t, int thread) {
        ASSERT_GE(thread, 0);
        ASSERT_LT(thread, threads);
        EXPECT_EQ(++inside[static_cast<size_t>(thread)], 1);
        inner.run(2, [&](int64_t, int nested) { EXPECT_EQ(nested, thread); });
        ++total;
        --inside[static_cast<size_t>(thread)];
      });
      outer.run(2, [&](int64_t, int again) { EXPECT_EQ(again, number); });
    });
    EXPECT_EQ(total, 240);
  }
}

// Exit statuses of the child below.
constexpr int kSaidSo = 0;
constexpr int kAllStarted = 1;
constexpr int kOtherWords = 2;
constexpr int kNoLimit = 3;

// In a child process: little address space is left, so that most stacks cannot be had.
int start_too_many_threads() {
  ::alarm(30);  // a pool that hangs ends with a signal
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
  const rlimit limit = {bytes, bytes};
  const bool set = ::setrlimit(RLIMIT_AS, &limit) == 0;
  if (!set || ::mmap(nullptr, size_t{1} << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                  MAP_FAILED) {
    return kNoLimit;
  }
  try {
    const ThreadPool pool(most_threads());
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool expected = text.starts_with("cpu: only ") &&
                          text.find(" threads could be started: ") != text.npos &&
                          text.ends_with("; use fewer threads");
    return expected ? kSaidSo : kOtherWords;
  }
  return kAllStarted;
}

TEST(ThreadPoolTest, ThreadsThatCannotStartAreAnError) {
  if (&__asan_init != nullptr || &__tsan_init != nullptr) {
    GTEST_SKIP() << "sanitizers do not work with little address space";
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(start_too_many_threads());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoLimit) GTEST_SKIP() << "address space cannot be limited here";
  EXPECT_EQ(WEXITSTATUS(status), kSaidSo);
}

TEST(ThreadPoolTest, ThousandsOfThreadsAreRefused) {
  EXPECT_THROW(ThreadPool pool(most_threads() + 1), Error);
}

TEST(CoresTest, TheAffinityMaskCounts) {
  cpu_set_t before;
  if (::sched_getaffinity(0, sizeof(before), &before) != 0) {
    GTEST_SKIP() << "more CPUs than this test can name";
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(physical_cores(), 1);
  ::sched_setaffinity(0, sizeof(before), &before);
}

class Quota : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.file(name)).parent_path());
    folder_.write(name, text + "\n");
  }
  int cores() const { return quota_cores(folder_.file("membership"), folder_.path()); }
  test::TemporaryFolder folder_;
};

TEST_F(Quota, NoneIsZero) {
  EXPECT_EQ(cores(), 0);
  put("membership", "0::/");
  EXPECT_EQ(cores(), 0);
  put("cpu.max", "max 100000");
  EXPECT_EQ(cores(), 0);
  put("cpu.max", "nonsense");
  EXPECT_EQ(cores(), 0);
  put("membership", "no colons\n:\n");
  EXPECT_EQ(cores(), 0);
}

TEST_F(Quota, TheSmallestOfAGroupAndItsParentsWins) {
  put("membership", "0::/user/job/step");
  put("cpu.max", "900000 100000");
  EXPECT_EQ(cores(), 9);
  put("user/cpu.max", "350000 100000");
  put("user/job/cpu.max", "max 100000");
  put("user/job/step/cpu.max", "800000 100000");
  EXPECT_EQ(cores(), 3);
  put("user/job/step/cpu.max", "50000 100000");
  EXPECT_EQ(cores(), 1);
  put("membership", "0::/elsewhere");  // as seen from outside of the container
  EXPECT_EQ(cores(), 9);
}

TEST_F(Quota, AGroupOutsideOfTheNamespaceStaysBelowTheRoot) {
  put("cpu.max", "100000 100000");
  put("root/cpu.max", "200000 100000");
  put("membership", "0::/../..");
  EXPECT_EQ(quota_cores(folder_.file("membership"), folder_.file("root")), 2);
}

TEST_F(Quota, VersionOneIsUnderstood) {
  put("membership", "5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/");
  put("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  put("cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores(), 0);
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "200000");
  put("cpu,cpuacct/job/cpu.cfs_period_us", "50000");
  EXPECT_EQ(cores(), 4);
  put("cpu/cpu.cfs_quota_us", "200000");
  put("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores(), 2);
}

}  // namespace
}  // namespace octet
