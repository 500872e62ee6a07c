// octet::bench_e2e: pictures as an engine that stays loaded makes them.
#include <algorithm>
#include <atomic>
#include <memory>

#include "backend/host_backend.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "base/stopwatch.h"
#include "base/utc.h"
#include "engine/requests.h"
#include "formats/boundary.h"
#include "measure/power_meter.h"
#include "measure/timing.h"
#include "nn/attention.h"
#include "octet/tools/bench_e2e.h"
#include "octet/tools/certify.h"
#include "octet/version.h"

namespace octet {
namespace {

void check_e2e(const E2eBenchRequest& request) {
  check(request.pictures >= 1 && request.pictures <= 100,
        "bench e2e: {} pictures, expected 1 to 100", request.pictures);
  check(request.text_tokens >= 1 && request.text_tokens <= 2048,
        "bench e2e: {} text tokens, expected 1 to 2048", request.text_tokens);
  check(request.layers >= 1, "bench e2e: {} layers, expected at least 1", request.layers);
}

ModelOptions model_options_of(const E2eBenchRequest& request) {
  ModelOptions options;
  options.model = request.model;
  options.device = request.device;
  options.threads = request.threads;
  options.activations = request.activations;
  options.linears = request.linears;
  options.attention = request.attention;
  options.tuning = request.tuning;
  options.require_int8 = request.require_int8;
  return options;
}

class E2eBencher {
 public:
  E2eBencher(const E2eBenchRequest& request, const E2eProgress& progress)
      : request_(request), progress_(progress), options_(model_options_of(request)) {
    if (request.model.empty()) {
      use_random_weights();
    } else {
      use_model();
    }
  }

  E2eBench run();

 private:
  void use_random_weights();
  void use_model();
  void load();
  E2eTimes make_picture(E2eBench& bench);
  void report(const std::string& phase, int64_t done, int64_t total) const {
    if (progress_) progress_(phase, static_cast<int>(done), static_cast<int>(total));
  }

  const E2eBenchRequest& request_;
  const E2eProgress& progress_;
  ModelOptions options_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<engine::Session> session_;
  std::shared_ptr<const engine::Job> job_;
};

void E2eBencher::use_random_weights() {
  const models::Family& family = models::family_named(request_.family);
  check_value(!options_.require_int8 || options_.linears == Linears::int8, "require_int8",
              "`require_int8`: the networks' linears were requested in floating point; leave "
              "`linears` out");
  check_value(options_.linears == Linears::int8 || options_.linears == Linears::floating, "linears",
              "`linears`: random weights are INT8 or floating point, got {}",
              options_.linears == Linears::fake ? "fake INT8" : "auto");
  models::check_image_size(request_.size, family.sizes);
  // A wrong request is refused before memory is taken.
  engine::Asked asked = engine::asked_as_is(
      family, {.preset = family.presets.front(), .size = request_.size, .steps = request_.steps},
      "random weights know no words");
  session_ = std::make_unique<engine::Session>(
      engine::SessionOptions{.model = options_}, stop_, family,
      family.synthetic_model(request_.layers, request_.text_tokens));
  job_ = engine::make_job(session_->facts(), {}, std::move(asked));
  if (!keeps_data_on_host(session_->backend())) return;  // a GPU says itself when it is full
  const EngineInfo info = session_->info();
  auto bytes = static_cast<double>(session_->work_bytes().of(job_->extent()));
  for (const PartPlace& place : info.plan) bytes += static_cast<double>(place.bytes);
  check_free_memory(fmt::format("bench e2e: all parts with {} layers", request_.layers), bytes,
                    sentence("give fewer `layers` or a smaller `size`"));
}

void E2eBencher::use_model() {
  const std::vector<CaptionText> captions = default_captions(request_.model);
  PictureRequest picture;
  picture.caption = captions.front().text;
  picture.caption_name = captions.front().name;
  picture.size = request_.size;
  picture.steps = request_.steps;
  session_ = std::make_unique<engine::Session>(
      engine::SessionOptions{.model = engine::with_paths(options_)}, stop_);
  job_ = engine::make_job(session_->facts(), picture);
}

// In millions of bytes, or of weights where these are made; part by part, each from 0 on.
void E2eBencher::load() {
  constexpr int64_t kUnit = 1'000'000;
  std::vector<PartPlace> parts = session_->info().plan;
  std::erase_if(parts, [](const PartPlace& part) { return part.where == Residency::streamed; });
  const char* unit = request_.model.empty() ? "million weights" : "MB";
  size_t begun = 0;
  int64_t before = 0;
  session_->load([&](const RenderProgress& told) {
    if (begun == 0 || told.done < before) ++begun;
    before = told.done;
    const std::string phase = fmt::format("{} of {}", unit, parts.at(begun - 1).part);
    report(phase, told.done / kUnit, told.total / kUnit);
    return true;
  });
}

E2eTimes E2eBencher::make_picture(E2eBench& bench) {
  session_->forget_captions();
  const Stopwatch watch;
  const RenderReport made = session_->render(*job_, {});
  const double whole_s = watch.microseconds() * 1e-6;
  bench.text_tokens = made.text_tokens;
  bench.places = made.places;
  bench.peak_bytes = std::max(bench.peak_bytes, made.peak_bytes);
  return {made.text_s, made.load_s, made.denoise_s, made.decode_s, whole_s};
}

E2eBench E2eBencher::run() {
  E2eBench bench;
  load();
  const int total = 1 + request_.pictures;
  int done = 0;
  report("pictures", done, total);
  make_picture(bench);  // chooses kernels
  bench.peak_bytes = 0;
  report("pictures", ++done, total);
  measure::PowerMeter power(session_->backend());
  power.start();
  for (int i = 0; i < request_.pictures; ++i) {
    bench.pictures.push_back(make_picture(bench));
    report("pictures", ++done, total);
  }
  bench.power = power.stop();
  const auto timing = [&](double E2eTimes::*stage) {
    std::vector<double> seconds;
    for (const E2eTimes& picture : bench.pictures) seconds.push_back(picture.*stage);
    return measure::timing_of(std::move(seconds));
  };
  for (double E2eTimes::*stage : {&E2eTimes::text_s, &E2eTimes::prepare_s, &E2eTimes::denoise_s,
                                  &E2eTimes::decode_s, &E2eTimes::whole_s}) {
    bench.median.*stage = timing(stage).median;
  }
  bench.steadiness = measure::steadiness_of({timing(&E2eTimes::whole_s)});
  bench.device = session_->backend().description();
  bench.date = utc_now();
  bench.commit = commit();
  bench.model = request_.model;
  bench.activations = request_.activations;
  bench.linears = request_.linears;
  bench.attention = nn::mode_of(nn::scores_for(request_.attention));
  bench.size = job_->size();
  bench.steps = request_.steps;
  return bench;
}

}  // namespace

E2eBench bench_e2e(const E2eBenchRequest& request, const E2eProgress& progress) try {
  check_e2e(request);
  return E2eBencher(request, progress).run();
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
