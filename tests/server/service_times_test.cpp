// How long the service says that a job will take, and what it tells the operator when one has
// ended.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "server/service_fixture.h"

namespace octet::server {
namespace {

using ServiceTimes = ServiceTest;

TEST_F(ServiceTimes, AreTheEnginesEstimates) {
  const auto service = begun();
  ASSERT_TRUE(wait_for(service->submit(asked_for("measured"))));
  const auto running = long_job(*service);
  const auto brief = service->submit(asked_for("brief", "", 2));
  const auto lengthy = service->submit(asked_for("lengthy", "", 1000));
  const double first = service->eta_s(*brief), second = service->eta_s(*lengthy);
  EXPECT_GT(service->eta_s(*running), 0);
  EXPECT_GT(brief->spec().estimate_s, 0);
  EXPECT_GT(lengthy->spec().estimate_s, 2 * brief->spec().estimate_s);
  EXPECT_GE(first, brief->spec().estimate_s);
  // What runs comes nearer to its end between the two questions.
  EXPECT_GT(second, brief->spec().estimate_s + lengthy->spec().estimate_s);
  running->cancel();
  lengthy->cancel();
  ASSERT_TRUE(wait_for(brief));
  EXPECT_LT(service->eta_s(*brief), 0) << "it has ended";
}

TEST_F(ServiceTimes, AreUnknownUntilSomethingWasMeasured) {
  const auto service = begun();
  {
    const auto running = long_job(*service);
    const auto waiting = service->submit(asked_for("waiting"));
    EXPECT_LT(service->eta_s(*waiting), 0);
    EXPECT_GE(service->retry_after_s(), 1);
    running->cancel();
    ASSERT_TRUE(wait_for(waiting));
  }
  const auto running = long_job(*service);
  const auto waiting = service->submit(asked_for("waiting"));
  EXPECT_GT(service->eta_s(*waiting), 0);
  running->cancel();
}

TEST_F(ServiceTimes, TheOperatorIsToldOfEachEndOnce) {
  std::mutex mutex;
  std::map<std::string, std::pair<JobState, int>> ends;
  options_.ended = [&](const Job& job) {
    const std::lock_guard lock(mutex);
    ends[job.id()].first = job.state();
    ++ends[job.id()].second;
  };
  std::string completed, cancelled;
  {
    const auto service = begun();
    const auto job = service->submit(asked_for("one"));
    ASSERT_TRUE(wait_for(job));
    completed = job->id();
    const auto running = long_job(*service);
    running->cancel();
    ASSERT_TRUE(wait_for(running));
    cancelled = running->id();
  }
  EXPECT_EQ(ends[completed], std::pair(JobState::completed, 1));
  EXPECT_EQ(ends[cancelled], std::pair(JobState::cancelled, 1));
}

}  // namespace
}  // namespace octet::server
