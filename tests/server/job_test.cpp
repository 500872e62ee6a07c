#include "server/service/job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "server/made_jobs.h"

namespace octet::server {
namespace {

using Kind = JobEvent::Kind;

// Kinds by a letter each, with their numbers: "q1 s2".
struct Seen {
  Job::Tell tell() {
    return [this](const JobEvent& event) {
      text += (text.empty() ? "" : " ") + std::string(1, "qspvire"[static_cast<int>(event.kind)]) +
              std::to_string(event.id);
    };
  }
  std::string text;
};

FinishedPicture one_picture(int index) {
  FinishedPicture picture;
  picture.index = index;
  picture.file = std::make_shared<const std::string>(100, 'x');
  return picture;
}

FinishedPreview one_preview(int image, int step) {
  FinishedPreview preview;
  preview.image = image;
  preview.step = step;
  preview.png = std::make_shared<const std::string>(10, 'x');
  return preview;
}

TEST(ServerJob, TellsAFollowerEverythingAsItHappens) {
  const auto job = made_job("a");
  Seen seen;
  const auto following = job->subscribe(0, seen.tell());
  EXPECT_TRUE(job->has_followers());
  EXPECT_EQ(seen.text, "q1");
  EXPECT_TRUE(job->start("cpu"));
  job->tell(RenderProgress{});
  job->tell(one_preview(0, 1));
  job->tell(one_preview(0, 2));
  job->add(one_picture(0));
  EXPECT_TRUE(job->complete(std::make_shared<const RenderReport>()));
  EXPECT_EQ(seen.text, "q1 s2 p3 v4 v5 i6 r7 e8");
}

TEST(ServerJob, LeavesOutWhatNewerEventsReplaced) {
  const auto job = made_job("a");
  job->start("cpu");
  for (int i = 0; i < 3; ++i) job->tell(RenderProgress{});
  job->tell(one_preview(0, 1));
  job->tell(one_preview(0, 2));
  Seen late;
  const auto following = job->subscribe(0, late.tell());
  EXPECT_EQ(late.text, "q1 s2 p5 v7");
  job->add(one_picture(0));
  job->complete(std::make_shared<const RenderReport>());
  Seen later;
  const auto also_following = job->subscribe(0, later.tell());
  EXPECT_EQ(later.text, "q1 s2 i8 r9 e10");
}

TEST(ServerJob, ResumesAfterAnEvent) {
  const auto job = made_job("a");
  job->start("cpu");
  job->add(one_picture(0));
  job->add(one_picture(1));
  Seen seen;
  const auto following = job->subscribe(3, seen.tell());
  EXPECT_EQ(seen.text, "i4");
  job->complete(std::make_shared<const RenderReport>());
  EXPECT_EQ(seen.text, "i4 r5 e6");
}

TEST(ServerJob, OneThatWaitsIsCancelledAtOnce) {
  const auto job = made_job("a");
  int ended = 0;
  job->on_end([&](Job&) { ++ended; });
  EXPECT_TRUE(job->cancel());
  EXPECT_EQ(job->state(), JobState::cancelled);
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(job->start("cpu"));
  EXPECT_FALSE(job->cancel());
  EXPECT_FALSE(job->complete(nullptr));
  EXPECT_EQ(ended, 1);
}

TEST(ServerJob, OneThatRunsIsCancelledWhenItsWorkerHasStopped) {
  const auto job = made_job("a");
  job->start("cpu");
  EXPECT_TRUE(job->cancel());
  EXPECT_TRUE(job->stop_token().stop_requested());
  EXPECT_TRUE(job->is_cancelling());
  EXPECT_EQ(job->state(), JobState::running);
  EXPECT_TRUE(job->end_stopped());
  EXPECT_EQ(job->state(), JobState::cancelled);
}

TEST(ServerJob, AnAbortedOneFailsForItsReason) {
  const auto job = made_job("a");
  job->start("cpu");
  job->abort({.status = 504, .message = "too long", .code = "timeout"});
  EXPECT_FALSE(job->is_cancelling());
  EXPECT_TRUE(job->stop_token().stop_requested());
  job->end_stopped();
  EXPECT_EQ(job->state(), JobState::failed);
  EXPECT_EQ(job->view().failure->code, "timeout");
  const auto waiting = made_job("b");
  waiting->abort({.message = "the server ends"});
  EXPECT_EQ(waiting->state(), JobState::failed);
}

TEST(ServerJob, NothingIsToldAfterItsEnd) {
  const auto job = made_job("a");
  job->start("cpu");
  Seen seen;
  const auto following = job->subscribe(0, seen.tell());
  job->fail({.message = "broken"});
  job->tell(RenderProgress{});
  job->add(one_picture(0));
  EXPECT_EQ(seen.text, "q1 s2 e3");
  EXPECT_TRUE(job->view().pictures.empty());
}

TEST(ServerJob, ADroppedSubscriptionIsNotTold) {
  const auto job = made_job("a");
  Seen seen;
  job->subscribe(0, seen.tell());
  EXPECT_FALSE(job->has_followers());
  job->start("cpu");
  EXPECT_EQ(seen.text, "q1");
}

TEST(ServerJob, ManyFollowersMissNothingThatIsNotReplaced) {
  constexpr int kPictures = 50, kFollowers = 4;
  const auto job = made_job("a");
  job->start("cpu");
  std::vector<std::atomic<int>> pictures(kFollowers);
  std::vector<std::atomic<bool>> ended(kFollowers);
  std::vector<std::shared_ptr<Job::Subscription>> following(kFollowers);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kFollowers; ++i) {
    threads.emplace_back([&, i] {
      following[i] = job->subscribe(0, [&, i, last = uint64_t{0}](const JobEvent& event) mutable {
        EXPECT_GT(event.id, last);
        EXPECT_FALSE(ended[i]);
        last = event.id;
        if (event.kind == Kind::picture) ++pictures[i];
        if (event.kind == Kind::ended) ended[i] = true;
      });
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < kPictures; ++i) job->tell(RenderProgress{});
  });
  for (int i = 0; i < kPictures; ++i) job->add(one_picture(i));
  for (std::thread& thread : threads) thread.join();
  job->complete(std::make_shared<const RenderReport>());
  for (size_t i = 0; i < kFollowers; ++i) {
    EXPECT_EQ(pictures[i], kPictures);
    EXPECT_TRUE(ended[i]);
  }
}

}  // namespace
}  // namespace octet::server
