// The service with the small model of tests/golden, and jobs for it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "models/golden_run.h"
#include "server/service/service.h"

namespace octet::server {

inline constexpr auto kLongWait = std::chrono::seconds(60);

inline std::string service_caption(const std::string& what) {
  return R"({"high_level_description":")" + what +
         R"(","compositional_deconstruction":{"background":"a wall","elements":[]}})";
}

inline JobSpec asked_for(const std::string& what, const std::string& key = "", int steps = 2) {
  JobSpec spec;
  spec.picture.caption = service_caption(what);
  spec.picture.size = {16, 16};
  spec.picture.preset = "turbo";
  spec.picture.steps = steps;
  spec.picture.seed = 3;
  spec.key = key;
  spec.request_id = "req-test";
  return spec;
}

// Until the job's end; false if it takes too long.
inline bool wait_for(const std::shared_ptr<Job>& job) {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  const auto following = job->subscribe(0, [&](const JobEvent& event) {
    const std::lock_guard lock(mutex);
    ended = event.kind == JobEvent::Kind::ended;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, kLongWait, [&] { return ended; });
}

inline Failure refusal_of(Service& service, const JobSpec& spec) {
  try {
    service.submit(spec);
  } catch (const Refused& refused) {
    return refused.failure;
  }
  return {.status = 0};
}

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
    options_.name = "w0";
    options_.model.model = test::golden_path("model");
    options_.model.convention = Convention::diffusers;
    options_.model.threads = 1;
    options_.devices = {"cpu"};
    options_.warm_up = false;
    options_.limits.steps = 1000;
    options_.read_prompt = [](const std::string& text) {
      return ReadPrompt{.caption = service_caption(text), .warnings = {"wrapped"}};
    };
    options_.log = [](log::Level, const std::string&, const std::string&) {};
  }

  // One that is ready.
  std::unique_ptr<Service> begun() const {
    auto service = std::make_unique<Service>(options_);
    const auto until = std::chrono::steady_clock::now() + kLongWait;
    while (!service->is_ready() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_TRUE(service->is_ready()) << service->why_not_ready();
    return service;
  }

  // A job that runs until it is stopped, or nearly.
  static std::shared_ptr<Job> long_job(Service& service) {
    const auto job = service.submit(asked_for("long", "", 1000));
    while (job->state() == JobState::queued) std::this_thread::yield();
    return job;
  }

  ServiceOptions options_;
};

}  // namespace octet::server
