#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "server/routes/error_objects.h"
#include "server/routes/follower.h"

namespace octet::server {
namespace {

using Kind = JobEvent::Kind;

// An executor, those who follow jobs by it, and the complaints of those that failed.
struct FollowedJobs {
  FollowedJobs() : all(executor, [this](const std::string& why) { note(why); }) {}
  ~FollowedJobs() {
    all.clear();
    executor.stop();
  }
  void note(const std::string& why) {
    const std::lock_guard lock(mutex);
    complaints.push_back(why);
  }

  std::mutex mutex;
  std::vector<std::string> complaints;
  Executor executor{2, 8};
  Followers all;
};

std::shared_ptr<Job> waiting_job() { return std::make_shared<Job>("test-1", JobSpec{}); }

// Until everything that was posted before has been done, by both threads.
void wait_for(Executor& executor) {
  const auto all_are_here = std::make_shared<std::latch>(3);  // both, and this thread
  for (int i = 0; i < 2; ++i) executor.post([all_are_here] { all_are_here->arrive_and_wait(); });
  all_are_here->arrive_and_wait();
}

TEST(Follower, TakesEventsInTheirOrderOneAtATime) {
  FollowedJobs jobs;
  const auto job = waiting_job();
  const auto follower = jobs.all.follow(job, 0);
  std::promise<void> ended;
  std::vector<uint64_t> ids;
  std::atomic<int> inside = 0;
  follower->start([&](const JobEvent& event) {
    EXPECT_EQ(++inside, 1);
    ids.push_back(event.id);
    --inside;
    if (event.kind == Kind::ended) ended.set_value();
  });
  job->start("cpu");
  for (int i = 0; i < 200; ++i) job->tell(RenderProgress{.done = i, .total = 200});
  job->complete(nullptr);
  ended.get_future().wait();
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  EXPECT_EQ(ids.size(), 203u);  // queued, started, progress, ended: this reader kept up
}

TEST(Follower, GetsWhatCameBeforeItsStart) {
  FollowedJobs jobs;
  const auto job = waiting_job();
  job->start("cpu");
  job->complete(nullptr);
  const auto follower = jobs.all.follow(job, 0);
  EXPECT_TRUE(follower->has_events());
  std::promise<void> ended;
  follower->start([&](const JobEvent& event) {
    if (event.kind == Kind::ended) ended.set_value();
  });
  ended.get_future().wait();
}

TEST(Follower, KnowsThatNothingMoreWillCome) {
  FollowedJobs jobs;
  const auto job = waiting_job();
  EXPECT_TRUE(jobs.all.follow(job, 99)->has_events());
  job->cancel();
  EXPECT_FALSE(jobs.all.follow(job, 99)->has_events());
}

TEST(Follower, TakesNothingAfterItHasLeft) {
  FollowedJobs jobs;
  const auto job = waiting_job();
  const auto follower = jobs.all.follow(job, 0);
  std::atomic<int> taken = 0;
  follower->leave();
  follower->start([&](const JobEvent&) { ++taken; });
  job->cancel();
  wait_for(jobs.executor);
  EXPECT_EQ(taken, 0);
  EXPECT_FALSE(job->has_followers());
}

TEST(Follower, LeavesWhenItsReaderFails) {
  FollowedJobs jobs;
  const auto job = waiting_job();
  const auto follower = jobs.all.follow(job, 0);
  std::atomic<int> taken = 0;
  follower->start([&](const JobEvent&) {
    ++taken;
    throw std::runtime_error("no ink");
  });
  wait_for(jobs.executor);
  job->cancel();
  wait_for(jobs.executor);
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(jobs.complaints, std::vector<std::string>{"no ink"});
}

// A job that outlives the server's answers must not reach for them.
TEST(Followers, AreGoneBeforeTheirExecutor) {
  const auto job = waiting_job();
  {
    FollowedJobs jobs;
    jobs.all.follow(job, 0)->start([](const JobEvent&) {});
    jobs.all.follow(job, 0)->start([](const JobEvent&) {});
  }
  job->start("cpu");
  job->complete(nullptr);
  EXPECT_FALSE(job->has_followers());
}

TEST(Executor, TurnsNewWorkAwayWhenTooMuchWaitsButNeverTheEndOfSome) {
  Executor executor(1, 2);
  std::promise<void> begun, go_on;
  executor.post([&] {
    begun.set_value();
    go_on.get_future().wait();
  });
  begun.get_future().wait();
  std::atomic<int> done = 0;
  const auto count = [&] { ++done; };
  EXPECT_TRUE(executor.offer(count));
  EXPECT_TRUE(executor.offer(count));
  EXPECT_FALSE(executor.offer(count));
  std::promise<void> last;
  executor.post([&] { last.set_value(); });
  go_on.set_value();
  last.get_future().wait();
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace octet::server
