// Small translations between what clients say and what the engine knows.
#include <gtest/gtest.h>

#include "server/routes/metrics_page.h"
#include "server/routes/openai.h"
#include "server/routes/router.h"
#include "server/routes/sdapi.h"
#include "server/routes/sse.h"

namespace octet::server {
namespace {

using Parts = std::vector<std::string>;

const std::vector<PresetInfo> kSomePresets{
    {.name = "default", .official_name = "V4_DEFAULT_20", .steps = 20},
    {.name = "quality", .steps = 48},
    {.name = "turbo", .steps = 12}};

TEST(Router, TakesPartsOutOfPaths) {
  EXPECT_EQ(match_path("/v1/jobs/{}/events", "/v1/jobs/a-1/events"), Parts{"a-1"});
  EXPECT_EQ(match_path("/v1/jobs", "/v1/jobs"), Parts{});
  EXPECT_EQ(match_path("/", "/"), Parts{});
  EXPECT_EQ(match_path("/page/{*}", "/page/a/b.js"), Parts{"a/b.js"});
  EXPECT_EQ(match_path("/v1/jobs/{}", "/v1/jobs/"), std::nullopt);
  EXPECT_EQ(match_path("/v1/jobs/{}", "/v1/jobs"), std::nullopt);
  EXPECT_EQ(match_path("/v1/jobs", "/v1/jobs/"), std::nullopt);
  EXPECT_EQ(match_path("/v1/jobs/{}", "/v1/jobs/a/b"), std::nullopt);
  EXPECT_EQ(match_path("/page/{*}", "/page/"), std::nullopt);
  EXPECT_EQ(match_path("/", ""), std::nullopt);
}

TEST(Router, ListsTheMethodsOfAPath) {
  Router router;
  router.add({.method = "GET", .pattern = "/jobs/{}"});
  router.add({.method = "DELETE", .pattern = "/jobs/{}"});
  EXPECT_EQ(router.methods_of("/jobs/1"), "GET, HEAD, DELETE");
  EXPECT_EQ(router.methods_of("/"), "");
  EXPECT_TRUE(router.find("HEAD", "/jobs/1"));
  EXPECT_FALSE(router.find("POST", "/jobs/1"));
}

TEST(OpenAI, QualityChoosesAPresetByItsSteps) {
  EXPECT_EQ(preset_of_quality("auto", kSomePresets), "");
  EXPECT_EQ(preset_of_quality("standard", kSomePresets), "");
  EXPECT_EQ(preset_of_quality("medium", kSomePresets), "");
  EXPECT_EQ(preset_of_quality("low", kSomePresets), "turbo");
  EXPECT_EQ(preset_of_quality("high", kSomePresets), "quality");
  EXPECT_EQ(preset_of_quality("hd", kSomePresets), "quality");
  EXPECT_EQ(preset_of_quality("V4_DEFAULT_20", kSomePresets), "default");
  try {
    preset_of_quality("best", kSomePresets);
    FAIL();
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.failure.param, "quality");
    EXPECT_NE(refused.failure.message.find("default, quality, turbo"), std::string::npos);
  }
}

// How many previews come before the last step, whose preview is not sent.
int partials_of(int steps, int asked) {
  const int every = preview_every(steps, asked);
  int sent = 0;
  for (int step = every; step < steps; step += every) ++sent;
  return sent;
}

TEST(OpenAI, PreviewsAreSpreadOverTheSteps) {
  for (int asked = 1; asked <= 3; ++asked) {
    for (int steps = 1; steps <= 60; ++steps) {
      EXPECT_LE(partials_of(steps, asked), asked) << steps;
      if (steps > 9) {
        EXPECT_EQ(partials_of(steps, asked), asked) << steps;
      }
    }
  }
  EXPECT_EQ(preview_every(20, 3), 5);
  EXPECT_EQ(preview_every(1, 3), 1);
}

TEST(OpenAI, NamesOfIgnoredFieldsCannotBecomeHeaders) {
  EXPECT_EQ(ignored_header({"style", "user"}), "style, user");
  EXPECT_EQ(ignored_header({"a\r\nSet-Cookie: b", "user"}), "?, user");
  EXPECT_EQ(ignored_header({"", std::string(1000, 'x'), "\xc3\xa9"}), "?");
  EXPECT_LT(ignored_header(std::vector<std::string>(5000, "user")).size(), 100u);
}

TEST(Sdapi, TakesLorasOutOfPrompts) {
  std::string prompt = "a fox <lora:style:0.8> in <lora:snow> snow <lora:broken";
  std::vector<std::string> loras;
  take_loras(prompt, loras);
  EXPECT_EQ(prompt, "a fox  in  snow <lora:broken");
  EXPECT_EQ(loras, (std::vector<std::string>{"style:0.8", "snow:1"}));
}

TEST(Events, AreOneBlockOfLines) {
  EXPECT_EQ(sse_event("progress", "{\"done\":1}", 7),
            "id: 7\nevent: progress\ndata: {\"done\":1}\n\n");
  EXPECT_EQ(sse_event("error", "{}"), "event: error\ndata: {}\n\n");
}

TEST(MetricsPage, IsPrometheusText) {
  MetricsPage page;
  page.begin("octet_jobs_total", "counter", "Jobs");
  page.value({{"state", "a\"b\\c\n"}}, 3);
  page.gauge("octet_ready", "Ready", 0.5);
  EXPECT_EQ(page.text(),
            "# HELP octet_jobs_total Jobs.\n# TYPE octet_jobs_total counter\n"
            "octet_jobs_total{state=\"a\\\"b\\\\c\\n\"} 3\n"
            "# HELP octet_ready Ready.\n# TYPE octet_ready gauge\noctet_ready 0.5\n");
}

}  // namespace
}  // namespace octet::server
