#include "api/bench_step.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "api/boundary.h"
#include "backend/host_backend.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "base/random_value.h"
#include "base/thread_pool.h"
#include "base/utc.h"
#include "devices/select.h"
#include "measure/steadiness.h"
#include "models/ideogram4/dit.h"
#include "models/image_size.h"
#include "octet/version.h"
#include "weights/random_weights.h"

namespace octet {
namespace {

using ideogram4::Dit;
using ideogram4::DitConfig;
using ideogram4::DitPrompt;

constexpr int kPixelsPerToken = models::SizeLimits{}.token_side;
constexpr int kWatchedForwards = 3;
constexpr float kTime = 0.5f;  // any moment takes as long

DType dtype_of(const StepBenchRequest& request) {
  if (request.dtype == "bf16") return DType::bf16;
  if (request.dtype == "f32") return DType::f32;
  fail("bench step: dtype '{}' is not one of bf16, f32", request.dtype);
}

bool wants_int8(const StepBenchRequest& request) {
  if (request.linears == "int8") return true;
  if (request.linears == "float") return false;
  fail("bench step: linears '{}' is not one of int8, float", request.linears);
}

void check_request(const StepBenchRequest& request) {
  models::check_image_size({request.width, request.height});
  check(request.text_tokens >= 0 && request.text_tokens <= 2048,
        "bench step: {} text tokens, expected 0 to 2048", request.text_tokens);
  check(request.steps >= 1 && request.steps <= 1000, "bench step: {} steps, expected 1 to 1000",
        request.steps);
  check_value(!request.require_int8 || wants_int8(request),
              "bench step: INT8 is required, and the linears were asked for in floating point; use "
              "--linears int8");
}

std::vector<float> random_numbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = random_value(seed, i);
  return numbers;
}

// One transformer with what it works on.
struct Branch {
  std::string name;
  bool conditional;
  int64_t text_tokens;
  Dit dit;
  std::optional<DitPrompt> prompt;
  std::vector<double> us;  // of each measured forward pass
};

class StepBencher {
 public:
  StepBencher(const StepBenchRequest& request, const DitConfig& config,
              const StepProgress& progress)
      : request_(request),
        progress_(progress),
        int8_(wants_int8(request)),
        backend_(select_backend({.device = request.device,
                                 .threads = request.threads,
                                 .tune = tune::parse_tune_mode(request.tune)})),
        pool_(request.threads),
        ctx_{*backend_, dtype_of(request)} {
    branches_.push_back({"conditional", true, request.text_tokens});
    branches_.push_back({"unconditional", false, 0});
    for (Branch& branch : branches_) branch.dit.config = config;
  }

  StepBench run();

 private:
  int64_t image_tokens() const {
    return int64_t{request_.width / kPixelsPerToken} * (request_.height / kPixelsPerToken);
  }
  void report(const char* phase, int64_t done, int64_t total) const {
    if (progress_) progress_(phase, static_cast<int>(done), static_cast<int>(total));
  }

  void count_weights();
  void make_weights();
  void prepare();
  void warm_up();
  void measure();
  StepBranch watch(Branch& branch);
  nn::Matrix forward(Branch& branch) {
    return ideogram4::forward(ctx_, branch.dit, *branch.prompt, *latent_, kTime);
  }
  // Microseconds of one forward pass in the order of the device's own work.
  double time_forward(Branch& branch);

  const StepBenchRequest& request_;
  const StepProgress& progress_;
  bool int8_;
  std::unique_ptr<Backend> backend_;
  ThreadPool pool_;  // makes the weights; the backend has its own
  nn::Context ctx_;
  std::vector<Branch> branches_;
  std::optional<nn::Matrix> latent_;
  int64_t parameters_ = 0;
};

void StepBencher::count_weights() {
  weights::WeightCount count(ctx_.dtype, int8_);
  for (Branch& branch : branches_) visit_weights(branch.dit, branch.conditional, count);
  parameters_ = count.parameters();
  if (!keeps_data_on_host(*backend_)) return;
  // The widest moment of a block holds its input, q, k and v, the attention's output and the next
  // linear's, or the two halves of the FFN; each also as INT8.
  const DitConfig& config = branches_[0].dit.config;
  const auto tokens = static_cast<double>(request_.text_tokens + image_tokens());
  const double activations =
      tokens * static_cast<double>(8 * config.hidden() + 3 * config.ffn) * bits_of(ctx_.dtype) / 8;
  const double features =
      4 * static_cast<double>(request_.text_tokens) * static_cast<double>(config.text_features);
  // The largest weight is in memory twice while it is made.
  const double staged = static_cast<double>(2 * config.ffn) * static_cast<double>(config.hidden());
  check_free_memory(fmt::format("bench step: {} layers at {} x {} pixels", config.layers,
                                request_.width, request_.height),
                    static_cast<double>(count.bytes()) + activations + 2 * features + staged);
}

void StepBencher::make_weights() {
  constexpr int64_t kUnit = 1'000'000;
  int64_t done = 0;
  const auto progress = [&](int64_t weights) {
    done += weights;
    report("million weights", done / kUnit, parameters_ / kUnit);
  };
  progress(0);
  for (Branch& branch : branches_) {
    weights::RandomWeights make(*backend_, pool_,
                                {.seed = branch.conditional ? 1u : 2u,
                                 .dtype = ctx_.dtype,
                                 .int8 = int8_,
                                 .progress = progress});
    visit_weights(branch.dit, branch.conditional, make);
  }
}

void StepBencher::prepare() {
  constexpr uint64_t kFeatureSeed = 3, kLatentSeed = 4;
  const DitConfig& config = branches_[0].dit.config;
  for (Branch& branch : branches_) {
    const auto features = random_numbers(branch.text_tokens * config.text_features, kFeatureSeed);
    branch.prompt.emplace(ideogram4::prepare(ctx_, branch.dit, features,
                                             request_.height / kPixelsPerToken,
                                             request_.width / kPixelsPerToken));
  }
  const auto latent = random_numbers(image_tokens() * config.latent_channels, kLatentSeed);
  latent_.emplace(upload_matrix(ctx_, latent.data(), image_tokens(), config.latent_channels));
}

double StepBencher::time_forward(Branch& branch) {
  const size_t begin = backend_->mark();
  const nn::Matrix velocity = forward(branch);
  const size_t end = backend_->mark();
  const double us = backend_->microseconds_between(begin, end);
  backend_->forget_marks();
  return us;
}

void check_native_int8(const nn::Profile& profile, const std::string& name) {
  for (const auto& use : profile.kernels()) {
    const auto& kept = ideogram4::kKeptInFloat;
    const bool is_kept = std::find(std::begin(kept), std::end(kept), use.layer) != std::end(kept);
    check(use.op == "gemm" || is_kept,
          "bench step: INT8 is required, and {} of the {} transformer ran as {}", use.layer, name,
          use.op);
  }
}

// The first pass also chooses kernels. Numbers that are not finite would be timed as well as any,
// and be worth nothing.
void StepBencher::warm_up() {
  int done = 0;
  report("forward passes to warm up", done, 2);
  for (Branch& branch : branches_) {
    nn::Profile profile(*backend_);
    ctx_.profile = &profile;
    const nn::Matrix velocity = forward(branch);
    ctx_.profile = nullptr;
    profile.collect();
    if (request_.require_int8) check_native_int8(profile, branch.name);
    std::vector<float> values(static_cast<size_t>(velocity.view().shape.elements()));
    download_matrix(ctx_, velocity, values.data());
    check(std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }),
          "bench step: the {} transformer gave a velocity that is not finite on {}", branch.name,
          backend_->name());
    report("forward passes to warm up", ++done, 2);
  }
}

void StepBencher::measure() {
  report("measured steps", 0, request_.steps);
  for (int step = 0; step < request_.steps; ++step) {
    for (Branch& branch : branches_) branch.us.push_back(time_forward(branch));
    report("measured steps", step + 1, request_.steps);
  }
}

double tops_of(const nn::OpTime& time) {
  return time.us > 0 ? time.operations / time.us * 1e-6 : 0;
}

StepBranch StepBencher::watch(Branch& branch) {
  StepBranch result;
  result.name = branch.name;
  result.tokens = branch.text_tokens + image_tokens();
  const measure::Timing timing = measure::timing_of(branch.us);
  result.ms = timing.median * 1e-3;
  result.steadiness = measure::steadiness_of({timing});

  nn::Profile profile(*backend_);
  ctx_.profile = &profile;
  double watched_us = 0;
  for (int i = 0; i < kWatchedForwards; ++i) {
    const size_t begin = backend_->mark();
    { const nn::Matrix velocity = forward(branch); }
    watched_us += backend_->microseconds_between(begin, backend_->mark());
    profile.collect();
  }
  ctx_.profile = nullptr;

  const auto ms_each = [](double us) { return us * 1e-3 / kWatchedForwards; };
  result.watched_ms = ms_each(watched_us);
  double rest = watched_us;
  for (const auto& [op, time] : profile.ops()) {
    result.ops.push_back(
        {op, time.calls / kWatchedForwards, ms_each(time.us), time.us / watched_us, tops_of(time)});
    rest -= time.us;
    if (op == "gemm") result.int8_tops = tops_of(time);
  }
  std::sort(result.ops.begin(), result.ops.end(),
            [](const StepOp& a, const StepOp& b) { return a.ms > b.ms; });
  rest = std::max(rest, 0.0);
  result.ops.push_back({"other", 0, ms_each(rest), rest / watched_us});
  for (const auto& use : profile.kernels()) {
    result.kernels.push_back({use.layer, use.op, use.kernel, use.time.calls / kWatchedForwards,
                              ms_each(use.time.us), tops_of(use.time)});
  }
  return result;
}

StepBench StepBencher::run() {
  StepBench bench;
  count_weights();
  make_weights();
  bench.weight_bytes = backend_->memory().used;
  prepare();
  warm_up();
  backend_->reset_peak();  // choosing kernels takes memory that a step does not
  measure();
  bench.peak_bytes = backend_->memory().peak;
  for (Branch& branch : branches_) bench.branches.push_back(watch(branch));
  bench.device = backend_->description();
  bench.date = utc_now();
  bench.commit = commit();
  bench.dtype = request_.dtype;
  bench.linears = request_.linears;
  bench.threads = backend_->threads();
  bench.width = request_.width;
  bench.height = request_.height;
  bench.text_tokens = request_.text_tokens;
  bench.parameters = parameters_;
  bench.layers = branches_[0].dit.config.layers;
  bench.steps = request_.steps;
  return bench;
}

}  // namespace

double StepBench::ms() const {
  double sum = 0;
  for (const StepBranch& branch : branches) sum += branch.ms;
  return sum;
}

StepBench bench_step(const StepBenchRequest& request, const DitConfig& config,
                     const StepProgress& progress) {
  check_request(request);
  return StepBencher(request, config, progress).run();
}

StepBench bench_step(const StepBenchRequest& request, const StepProgress& progress) try {
  DitConfig config;
  check(request.layers >= 1 && request.layers <= config.layers,
        "bench step: {} layers, expected 1 to {}", request.layers, config.layers);
  config.layers = request.layers;
  return bench_step(request, config, progress);
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
