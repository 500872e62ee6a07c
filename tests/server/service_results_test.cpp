// Results and how long they are kept: by size, beside other keys', and over a restart.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "formats/temporary_folder.h"
#include "server/service_fixture.h"

namespace octet::server {
namespace {

using KeptResults = ServiceTest;

TEST_F(KeptResults, KeepsResultsForATimeAndUpToASize) {
  options_.keep_bytes = 2500;
  const auto service = begun();
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 6; ++i) {
    jobs.push_back(service->submit(asked_for(std::to_string(i))));
    ASSERT_TRUE(wait_for(jobs.back()));
  }
  EXPECT_LE(service->counts().kept_bytes, options_.keep_bytes);
  EXPECT_EQ(service->find(jobs.front()->id(), ""), nullptr);
  EXPECT_EQ(service->find(jobs.back()->id(), ""), jobs.back());
  service->forget(*jobs.back());
  EXPECT_EQ(service->find(jobs.back()->id(), ""), nullptr);
}

TEST_F(KeptResults, OneKeyDoesNotDriveOutTheResultsOfAnother) {
  options_.keep_bytes = 10000;
  const auto service = begun();
  const auto of_anna = service->submit(asked_for("one", "anna"));
  ASSERT_TRUE(wait_for(of_anna));
  std::vector<std::shared_ptr<Job>> of_bob;
  size_t bytes = 0;
  while (bytes <= 2 * options_.keep_bytes) {
    of_bob.push_back(service->submit(asked_for("one", "bob")));
    ASSERT_TRUE(wait_for(of_bob.back()));
    bytes += of_bob.back()->bytes();
  }
  EXPECT_LE(service->counts().kept_bytes, options_.keep_bytes);
  EXPECT_EQ(service->find(of_anna->id(), "anna"), of_anna);
  EXPECT_EQ(service->find(of_bob.front()->id(), "bob"), nullptr);
  EXPECT_EQ(service->find(of_bob.back()->id(), "bob"), of_bob.back());
}

TEST_F(KeptResults, SparesTheResultThatIsNewWhateverItsSize) {
  JobSpec large = asked_for("large", "zoe");
  large.picture.size = {64, 64};
  size_t small_bytes = 0, large_bytes = 0;
  {
    const auto service = begun();
    const auto of_anna = service->submit(asked_for("0", "anna")), of_zoe = service->submit(large);
    ASSERT_TRUE(wait_for(of_anna) && wait_for(of_zoe));
    small_bytes = of_anna->bytes(), large_bytes = of_zoe->bytes();
  }
  ASSERT_GT(large_bytes, 2 * small_bytes);
  options_.keep_bytes = large_bytes + small_bytes * 5 / 2;
  const auto service = begun();
  std::vector<std::shared_ptr<Job>> small;
  for (int i = 0; i < 4; ++i) {
    small.push_back(service->submit(asked_for(std::to_string(i), "k" + std::to_string(i))));
    ASSERT_TRUE(wait_for(small.back()));
  }
  const auto newest = service->submit(large);
  ASSERT_TRUE(wait_for(newest));
  EXPECT_EQ(service->find(newest->id(), "zoe"), newest);
  EXPECT_EQ(service->find(small.front()->id(), "k0"), nullptr);
  EXPECT_EQ(service->find(small.back()->id(), "k3"), small.back());
}

TEST_F(KeptResults, TellsAfterARestartWhatBecameOfAJob) {
  const test::TemporaryFolder folder;
  options_.state_folder = folder.path();
  std::string completed, waiting, cancelled, failed;
  {
    const auto service = begun();
    const auto bad = service->submit(asked_for("bad", "anna", 1000));
    bad->abort({.status = 504, .message = "too slow", .code = "timeout"});
    ASSERT_TRUE(wait_for(bad));
    failed = bad->id();
    const auto done = service->submit(asked_for("done", "anna"));
    ASSERT_TRUE(wait_for(done));
    completed = done->id();
    const auto running = long_job(*service);
    waiting = service->submit(asked_for("waiting", "anna"))->id();
    const auto given_up = service->submit(asked_for("given up", "anna"));
    given_up->cancel();
    cancelled = given_up->id();
    const auto unwanted = service->submit(asked_for("unwanted", "anna"));
    unwanted->cancel();
    service->forget(*unwanted);
  }
  const auto service = begun();
  for (const std::string& id : {completed, waiting}) {
    const auto job = service->find(id, "anna");
    ASSERT_NE(job, nullptr) << id;
    EXPECT_EQ(job->state(), JobState::failed);
    EXPECT_EQ(job->view().failure->code, "restarted");
    EXPECT_NE(job->view().failure->message.find("ask again"), std::string::npos);
    EXPECT_EQ(service->find(id, ""), nullptr);
    // Whoever followed it is told the end, whichever event came last.
    uint64_t told = 0;
    const auto following = job->subscribe(
        37, [&](const JobEvent& event) { told += event.kind == JobEvent::Kind::ended; });
    EXPECT_EQ(told, 1u);
  }
  ASSERT_NE(service->find(cancelled, "anna"), nullptr);
  EXPECT_EQ(service->find(cancelled, "anna")->state(), JobState::cancelled);
  // Another reason stays what it was.
  ASSERT_NE(service->find(failed, "anna"), nullptr);
  EXPECT_EQ(service->find(failed, "anna")->view().failure->message, "too slow");
  EXPECT_NE(service->find(failed, "anna")->view().failure->code, "restarted");
  EXPECT_EQ(service->jobs_of("anna").size(), 4u);
}

}  // namespace
}  // namespace octet::server
