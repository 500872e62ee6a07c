// A small calibration for tests: two captions and three steps, one of them not guided.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "convert/calibrate.h"
#include "cpu/cpu_backend.h"
#include "formats/temporary_folder.h"
#include "models/golden_run.h"
#include "models/sample_captions.h"
#include "models/tokenizer/unicode.h"

namespace octet::test {

inline convert::CalibrateRequest small_calibration(const std::string& state_path = "") {
  convert::CalibrateRequest request;
  request.family = &models::family_named("ideogram4");
  request.files = request.family->find({.model = golden_path("model")});
  request.captions = {with_elements(""), with_elements(R"({"type":"obj","desc":"A door."})")};
  request.convention = Convention::diffusers;
  const int side =
      request.family->open(request.files, {.convention = request.convention}).sizes.token_side;
  request.size = {5 * side, 4 * side};
  request.schedule.preset = request.family->presets.front();
  request.schedule.guidance = {7, 1, 3};
  request.schedule.steps = 3;
  request.seed = 3;
  request.rows = 7;
  request.state_path = state_path;
  request.save_every_s = 0;
  return request;
}

class Calibrating : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) {
      GTEST_SKIP() << "this build has no utf8proc, so no tokenizer reads the captions";
    }
  }

  quant::ActivationStatistics calibrate(const convert::CalibrateRequest& request,
                                        DType dtype = DType::f32,
                                        const OnRenderProgress& on_progress = {}) {
    const auto backend = make_cpu_backend({.threads = 1});
    nn::Context ctx{*backend, dtype};
    auto statistics = convert::calibrate(ctx, request, on_progress);
    peak_ = backend->memory().peak;
    return statistics;
  }

  TemporaryFolder folder_;
  size_t peak_ = 0;  // bytes of the last run
};

inline void expect_same(const quant::ActivationStatistics& got,
                        const quant::ActivationStatistics& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, inputs] : want) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(got.contains(name));
    EXPECT_EQ(got.at(name).k, inputs.k);
    EXPECT_EQ(got.at(name).rows_seen, inputs.rows_seen);
    EXPECT_EQ(got.at(name).amax, inputs.amax);
    EXPECT_EQ(got.at(name).rows, inputs.rows);
  }
}

}  // namespace octet::test
