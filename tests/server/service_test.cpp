// The service with the small model of tests/golden: what becomes of jobs.
#include "server/service/service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "octet/error.h"
#include "server/service_fixture.h"

namespace octet::server {
namespace {

TEST_F(ServiceTest, RendersWhatWasAskedFor) {
  const auto service = begun();
  JobSpec spec = asked_for("a cat", "anna");
  spec.picture.images = 2;
  spec.preview_every = 1;
  const auto job = service->submit(spec);
  EXPECT_TRUE(job->id().starts_with("w0-"));
  ASSERT_TRUE(wait_for(job));
  const JobView view = job->view();
  EXPECT_EQ(view.state, JobState::completed) << (view.failure ? view.failure->message : "");
  ASSERT_EQ(view.pictures.size(), 2u);
  EXPECT_EQ(view.pictures[1].seed, 4u);
  EXPECT_EQ(view.pictures[0].file->substr(1, 3), "PNG");
  ASSERT_NE(view.report, nullptr);
  EXPECT_EQ(view.report->steps, 2);
  EXPECT_EQ(job->spec().steps, 2);
  EXPECT_LE(view.created_at, view.started_at);
  EXPECT_LE(view.started_at, view.ended_at);
  EXPECT_EQ(service->find(job->id(), "anna"), job);
  EXPECT_EQ(service->find(job->id(), "ben"), nullptr);
  EXPECT_EQ(service->find(job->id(), ""), nullptr);
  const ServiceCounts counts = service->counts();
  EXPECT_EQ(counts.completed, 1u);
  EXPECT_EQ(counts.pictures, 2u);
  EXPECT_EQ(counts.steps, 4u);
  EXPECT_EQ(counts.kept, 1);
  EXPECT_EQ(counts.queued + counts.running, 0);
}

TEST_F(ServiceTest, ReadsAPromptAndPassesItsWarningsOn) {
  const auto service = begun();
  JobSpec spec = asked_for("");
  spec.picture.caption.clear();
  spec.prompt = "a dog";
  const auto job = service->submit(spec);
  EXPECT_NE(job->spec().picture.caption.find("a dog"), std::string::npos);
  ASSERT_FALSE(job->spec().warnings.empty());
  EXPECT_EQ(job->spec().warnings[0], "wrapped");
  EXPECT_TRUE(wait_for(job));
}

TEST_F(ServiceTest, RefusesWhatIsBeyondItsLimitsByName) {
  options_.limits = {.pixels = 64 * 64, .steps = 10, .images = 2, .caption_bytes = 200, .loras = 1};
  options_.loras = {{"style", "/somewhere/style.safetensors"}};
  const auto service = begun();
  const auto changed = [](auto change) {
    JobSpec spec = asked_for("a cat");
    change(spec);
    return spec;
  };
  const std::pair<const char*, JobSpec> cases[] = {
      {"size", changed([](JobSpec& spec) {
         spec.picture.size = {128, 128};
       })},
      {"size", changed([](JobSpec& spec) {
         spec.picture.size = {17, 16};
       })},
      {"steps", changed([](JobSpec& spec) { spec.picture.steps = 11; })},
      {"preset", changed([](JobSpec& spec) { spec.picture.preset = "best"; })},
      {"n", changed([](JobSpec& spec) { spec.picture.images = 3; })},
      {"json_prompt", changed([](JobSpec& spec) { spec.picture.caption.assign(201, 'x'); })},
      {"json_prompt", changed([](JobSpec& spec) { spec.picture.caption = "{}"; })},
      {"lora", changed([](JobSpec& spec) { spec.loras = {"/etc/passwd"}; })},
      {"lora", changed([](JobSpec& spec) {
         spec.loras = {"style", "style:0.5"};
       })},
  };
  for (const auto& [field, spec] : cases) {
    const Failure failure = refusal_of(*service, spec);
    EXPECT_EQ(failure.status, 400) << field << ": " << failure.message;
    EXPECT_EQ(failure.param, field) << failure.message;
    EXPECT_EQ(failure.type, "invalid_request_error");
    EXPECT_EQ(failure.message.find("/somewhere"), std::string::npos);
  }
  EXPECT_EQ(service->counts().rejected, std::size(cases));
  EXPECT_EQ(service->counts().submitted, 0u);
}

TEST_F(ServiceTest, AFullQueueOfOneKeyLeavesOthersTheirPlaces) {
  options_.queue = 2;
  const auto service = begun();
  const auto running = long_job(*service);
  const auto first = service->submit(asked_for("1", "busy"));
  service->submit(asked_for("2", "busy"));
  const Failure failure = refusal_of(*service, asked_for("3", "busy"));
  EXPECT_EQ(failure.status, 429);
  EXPECT_EQ(failure.code, "queue_full");
  EXPECT_GT(failure.retry_after_s, 0);
  const auto other = service->submit(asked_for("4", "other"));
  EXPECT_EQ(service->position(*first), 1);
  EXPECT_EQ(service->position(*other), 2);
  // A place is free as soon as a job gives it up.
  EXPECT_TRUE(first->cancel());
  EXPECT_NO_THROW(service->submit(asked_for("5", "busy")));
  running->cancel();
  EXPECT_TRUE(wait_for(other));
}

TEST_F(ServiceTest, CancelsWhatRuns) {
  const auto service = begun();
  const auto job = long_job(*service);
  EXPECT_TRUE(job->cancel());
  ASSERT_TRUE(wait_for(job));
  EXPECT_EQ(job->state(), JobState::cancelled);
  EXPECT_EQ(service->counts().cancelled, 1u);
  const auto next = service->submit(asked_for("next"));
  ASSERT_TRUE(wait_for(next));
  EXPECT_EQ(next->state(), JobState::completed);
}

TEST_F(ServiceTest, EndsAJobThatTakesTooLong) {
  options_.limits.seconds = 0.02;
  const auto service = begun();
  const auto job = service->submit(asked_for("slow", "", 100));
  ASSERT_TRUE(wait_for(job));
  EXPECT_EQ(job->state(), JobState::failed);
  EXPECT_EQ(job->view().failure->code, "timeout");
  EXPECT_EQ(job->view().failure->status, 504);
}

TEST_F(ServiceTest, ARepeatedKeyGivesTheSameJob) {
  const auto service = begun();
  JobSpec spec = asked_for("once", "anna");
  spec.idempotency_key = "k";
  spec.fingerprint = "f";
  const auto job = service->submit(spec);
  EXPECT_EQ(service->submit(spec), job);
  ASSERT_TRUE(wait_for(job));
  EXPECT_EQ(service->submit(spec), job);
  JobSpec another = spec;
  another.fingerprint = "g";
  EXPECT_EQ(refusal_of(*service, another).status, 409);
  JobSpec of_ben = spec;
  of_ben.key = "ben";
  EXPECT_NE(service->submit(of_ben), job);
  EXPECT_EQ(service->counts().submitted, 2u);
}

TEST_F(ServiceTest, ARepeatedKeyGivesOneJobHoweverManyAskAtOnce) {
  const auto service = begun();
  const auto running = long_job(*service);
  JobSpec spec = asked_for("once");
  spec.idempotency_key = "k";
  std::vector<std::shared_ptr<Job>> jobs(8);
  {
    std::vector<std::jthread> clients;
    for (auto& job : jobs) clients.emplace_back([&] { job = service->submit(spec); });
  }
  for (const auto& job : jobs) EXPECT_EQ(job, jobs.front());
  EXPECT_EQ(service->counts().submitted, 2u);
  running->cancel();
}

TEST_F(ServiceTest, AJobCanBeCancelledAsSoonAsItIsListed) {
  options_.queue = 200;
  const auto service = begun();
  {
    const std::jthread canceller([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (const auto& job : service->jobs_of("")) job->cancel();
      }
    });
    for (int i = 0; i < 200; ++i) service->submit(asked_for(std::to_string(i)));
  }
  for (const auto& job : service->jobs_of("")) job->cancel();
  service->drain(60);
  EXPECT_EQ(service->counts().running, 0);
}

TEST_F(ServiceTest, AJobThatEndedWithoutPicturesIsNoAnswerToARepeatedKey) {
  const auto service = begun();
  const auto running = long_job(*service);
  JobSpec spec = asked_for("once");
  spec.idempotency_key = "k";
  const auto job = service->submit(spec);
  job->cancel();
  const auto again = service->submit(spec);
  EXPECT_NE(again, job);
  // Nor does the end of the first one's keep time forget whose the key is now.
  service->forget(*job);
  EXPECT_EQ(service->submit(spec), again);
  running->cancel();
}

TEST_F(ServiceTest, DrainingEndsWhatIsUnderWayAndTakesNothingNew) {
  const auto service = begun();
  const auto first = service->submit(asked_for("first", "", 20));
  const auto second = service->submit(asked_for("second"));
  std::thread draining([&] { service->drain(60); });
  while (!service->is_draining()) std::this_thread::yield();
  EXPECT_EQ(refusal_of(*service, asked_for("late")).code, "draining");
  EXPECT_FALSE(service->is_ready());
  draining.join();
  EXPECT_EQ(first->state(), JobState::completed);
  EXPECT_EQ(second->state(), JobState::completed);
}

TEST_F(ServiceTest, DrainingGivesUpAfterItsTime) {
  const auto service = begun();
  const auto running = long_job(*service);
  const auto waiting = service->submit(asked_for("waiting"));
  service->drain(0);
  for (const auto& job : {running, waiting}) {
    EXPECT_EQ(job->state(), JobState::failed);
    EXPECT_EQ(job->view().failure->code, "restarted");
  }
}

TEST_F(ServiceTest, SaysWhenNoModelCanBeLoaded) {
  options_.model.model = "/nowhere";
  std::string logged;
  options_.log = [&](log::Level, const std::string& line, const std::string&) { logged += line; };
  Service service(options_);
  const auto until = std::chrono::steady_clock::now() + kLongWait;
  while (!service.has_failed() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(service.has_failed());
  const Failure failure = refusal_of(service, asked_for("a cat"));
  EXPECT_EQ(failure.status, 503);
  EXPECT_EQ(failure.code, "no_model");
  EXPECT_EQ(failure.message.find("/nowhere"), std::string::npos);
  EXPECT_NE(service.failure().find("/nowhere"), std::string::npos);
}

TEST_F(ServiceTest, TwoWorkersShareTheQueue) {
  options_.devices = {"cpu", "cpu"};
  const auto service = begun();
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(service->submit(asked_for(std::to_string(i))));
  for (const auto& job : jobs) {
    ASSERT_TRUE(wait_for(job));
    EXPECT_EQ(job->state(), JobState::completed);
  }
  EXPECT_EQ(service->counts().completed, 8u);
  EXPECT_EQ(service->workers().size(), 2u);
}

}  // namespace
}  // namespace octet::server
