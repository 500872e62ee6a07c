// tune: processes that store at the same time, and processes that are killed while they do.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "formats/temporary_folder.h"
#include "tune/plan_cache.h"
#include "tune/tune_support.h"

namespace octet::tune {
namespace {

using test::LogLines;
using test::some_header;
using test::some_plan;
using test::some_problem;

constexpr auto kPatience = std::chrono::minutes(5);  // a slow disk is not what is tested here

// Runs `work` in a process of its own. It must not touch GoogleTest: its exit status is 0, or 1
// when something was thrown or logged.
template <class Work>
pid_t start(Work work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 1;
  try {
    const LogLines log;
    work();
    status = log.count() == 0 ? 0 : 1;
  } catch (...) {
  }
  ::_exit(status);
}

int exit_status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(PlanProcesses, ThatStoreAtOnceLoseNothing) {
  constexpr int kProcesses = 4;
  constexpr int kStores = 40;
  const octet::test::TemporaryFolder folder;
  const std::string path = folder.file("new/plans.json");
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(start([&] {
      for (int i = 0; i < kStores; ++i) {
        // A cache per store: with one for all, the process would bring lost plans back itself.
        PlanCache cache(path, some_header(), kPatience);
        cache.store(some_problem(process * 1000 + i), some_plan("by" + std::to_string(process)));
      }
    }));
    ASSERT_GT(children.back(), 0);
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status_of(child), 0);

  const LogLines log;
  PlanCache cache(path, some_header());
  cache.load();
  for (int process = 0; process < kProcesses; ++process) {
    for (int i = 0; i < kStores; ++i) {
      const GemmPlan* plan = cache.find(some_problem(process * 1000 + i));
      ASSERT_NE(plan, nullptr) << "plan " << i << " of process " << process << " was lost";
      EXPECT_EQ(plan->kernel, "by" + std::to_string(process));
    }
  }
  EXPECT_EQ(log.count(log::Level::debug), 0u) << log.all();
}

// Killed at ever later moments. What the file held before each must still be there, and the dead
// process must not hold the lock.
TEST(PlanProcesses, ThatAreKilledLeaveAReadableFile) {
  const octet::test::TemporaryFolder folder;
  const std::string path = folder.file("plans.json");
  const LogLines log;
  constexpr int kAttempts = 40;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    PlanCache mine(path, some_header(), kPatience);
    mine.store(some_problem(1'000'000 + attempt), some_plan());
    const pid_t child = start([&] {
      for (int64_t i = 0;; ++i) {
        PlanCache(path, some_header(), kPatience).store(some_problem(i % 50), some_plan("child"));
      }
    });
    ASSERT_GT(child, 0);
    ::usleep(static_cast<useconds_t>(1000 + 530 * attempt));
    // The last one is not killed before it stored, however slow this machine or build is.
    for (int wait = 0; attempt == kAttempts - 1 && wait < 30'000; ++wait) {
      if (test::plan_in(path, some_problem(0))) break;
      ::usleep(1000);
    }
    ::kill(child, SIGKILL);
    const int status = exit_status_of(child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

    PlanCache after(path, some_header());
    after.load();
    for (int earlier = 0; earlier <= attempt; ++earlier) {
      ASSERT_NE(after.find(some_problem(1'000'000 + earlier)), nullptr) << attempt;
    }
  }
  EXPECT_EQ(log.count(log::Level::debug), 0u) << log.all();
  EXPECT_TRUE(test::plan_in(path, some_problem(0))) << "no child stored within half a minute";
}

}  // namespace
}  // namespace octet::tune
