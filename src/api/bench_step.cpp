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
#include "base/utc.h"
#include "devices/select.h"
#include "engine/network_run.h"
#include "engine/sampler.h"
#include "measure/ceilings.h"
#include "measure/power_meter.h"
#include "measure/steadiness.h"
#include "nn/attention.h"
#include "nn/linear_list.h"
#include "nn/profile.h"
#include "octet/version.h"
#include "weights/random_weights.h"

namespace octet {
namespace {

constexpr int kWatchedForwards = 3;
constexpr int kUnmeasuredSteps = 2;  // the first plans its memory, the second is recorded
constexpr float kTime = 0.5f;        // any moment takes as long
constexpr float kGuidance = 7;

DType dtype_of(const StepBenchRequest& request) {
  return request.activations == Activations::bf16 ? DType::bf16 : DType::f32;
}

void check_request(const StepBenchRequest& request) {
  models::check_image_size({request.width, request.height},
                           models::family_named(request.family).sizes);
  check(request.text_tokens >= 0 && request.text_tokens <= 2048,
        "bench step: {} text tokens, expected 0 to 2048", request.text_tokens);
  check(request.steps >= 1 && request.steps <= 1000, "bench step: {} steps, expected 1 to 1000",
        request.steps);
  check_value(request.linears == Linears::int8 || request.linears == Linears::floating, "linears",
              "`linears`: fake INT8 is only for comparing pictures and auto for making them, "
              "expected INT8 or floating point");
  check_value(!request.require_int8 || request.linears == Linears::int8, "require_int8",
              "`require_int8`: the networks' linears were asked for in floating point; leave "
              "`linears` out");
}

std::vector<float> random_numbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = random_value(seed, i);
  return numbers;
}

// One network with what it works on.
struct BenchedNetwork {
  std::string name;
  std::unique_ptr<models::Network> network;
  int64_t text_tokens = 0;
  std::unique_ptr<models::Conditioning> conditioning;
  std::unique_ptr<models::Timeline> timeline;
  std::unique_ptr<engine::NetworkRun> run;
  std::pair<size_t, size_t> marks;  // around its latest forward pass
  std::vector<double> us;           // of each measured forward pass
};

// Attaches a profile to a context as long as this lives: a pass that throws leaves none behind.
class Watching {
 public:
  Watching(nn::Context& ctx, nn::Profile& profile) : ctx_(ctx) { ctx_.profile = &profile; }
  ~Watching() { ctx_.profile = nullptr; }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  nn::Context& ctx_;
};

class StepBencher {
 public:
  StepBencher(const StepBenchRequest& request, const MakeNetwork& make,
              const StepProgress& progress)
      : request_(request),
        progress_(progress),
        int8_(request.linears == Linears::int8),
        backend_(select_backend(
            {.device = request.device, .threads = request.threads, .tune = request.tuning})),
        ctx_{.backend = *backend_,
             .dtype = dtype_of(request),
             .scores = nn::scores_for(request.attention)},
        power_(*backend_) {
    const models::Family& family = models::family_named(request.family);
    token_side_ = family.sizes.token_side;
    const auto& networks = family.networks;
    for (size_t i = 0; i < networks.size(); ++i) {
      BenchedNetwork& branch = branches_.emplace_back();
      branch.name = networks[i].name;
      branch.network = make(i);
      if (branch.network->sees_text()) branch.text_tokens = request.text_tokens;
    }
  }

  StepBench run();
  // Once more with the same weights.
  StepBench run_again(const StepBenchRequest& request);

 private:
  int64_t image_tokens() const {
    return int64_t{request_.width / token_side_} * (request_.height / token_side_);
  }
  void report(const char* phase, int64_t done, int64_t total) const {
    if (progress_) progress_(phase, static_cast<int>(done), static_cast<int>(total));
  }

  void count_weights();
  void make_weights();
  void prepare();
  void warm_up();
  void measure(StepBench& bench);
  void find_ceilings(StepBench& bench);
  StepBranch watch(BenchedNetwork& branch);
  nn::Matrix forward(BenchedNetwork& branch) {
    nn::Matrix out = ctx_.matrix(image_tokens(), branch.network->latent_channels());
    branch.network->velocity(ctx_, *branch.conditioning, *branch.timeline, *latent_, out);
    return out;
  }
  StepBench measured();

  StepBenchRequest request_;
  StepProgress progress_;
  bool int8_;
  int token_side_ = 0;  // pixels
  std::unique_ptr<Backend> backend_;
  nn::Context ctx_;
  measure::PowerMeter power_;
  measure::Ceilings ceilings_;
  std::vector<BenchedNetwork> branches_;
  std::vector<float> noise_;
  std::optional<nn::Matrix> latent_;  // the same in the type of the activations
  int64_t parameters_ = 0;
  uint64_t weight_bytes_ = 0;
  std::string why_no_weights_;  // after they could not be made
};

void StepBencher::count_weights() {
  weights::WeightCount count(ctx_.dtype, int8_);
  for (BenchedNetwork& branch : branches_) branch.network->visit_all(count);
  parameters_ = count.parameters();
  if (!keeps_data_on_host(*backend_)) return;
  // What the linears of the widest unit read and write, and the largest weight twice: it is there
  // in two forms while it is made.
  double columns = 0, staged = 0;
  models::Network& network = *branches_.front().network;
  for (int64_t unit = 0; unit < network.unit_count(); ++unit) {
    nn::LinearList list;
    network.visit(unit, list);
    double of_unit = 0;
    for (const nn::LinearSpec& spec : list.linears()) {
      if (!spec.large) continue;
      of_unit += static_cast<double>(spec.n() + spec.k);
      staged = std::max(staged, static_cast<double>(spec.n()) * static_cast<double>(spec.k));
    }
    columns = std::max(columns, of_unit);
  }
  const auto tokens = static_cast<double>(request_.text_tokens + image_tokens());
  const double activations = tokens * columns * bits_of(ctx_.dtype) / 8;
  const double features =
      4 * static_cast<double>(request_.text_tokens) * static_cast<double>(network.text_features());
  check_free_memory(fmt::format("bench step: {} layers at {} x {} pixels", request_.layers,
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
  uint64_t seed = 0;
  for (BenchedNetwork& branch : branches_) {
    weights::RandomWeights make(
        *backend_, {.seed = ++seed, .dtype = ctx_.dtype, .int8 = int8_, .progress = progress});
    branch.network->visit_all(make);
  }
}

void StepBencher::prepare() {
  constexpr uint64_t kFeatureSeed = 3, kLatentSeed = 4;
  const models::Grid grid{request_.height / token_side_, request_.width / token_side_};
  for (BenchedNetwork& branch : branches_) {
    const auto features =
        random_numbers(branch.text_tokens * branch.network->text_features(), kFeatureSeed);
    branch.conditioning = branch.network->prepare(ctx_, features, grid);
    branch.timeline = branch.network->make_timeline(ctx_, {&kTime, 1});
    branch.timeline->go_to(ctx_, 0);
    branch.run = std::make_unique<engine::NetworkRun>(ctx_, *branch.network, *branch.conditioning,
                                                      *branch.timeline, /*stays=*/true);
  }
  const int64_t channels = branches_.front().network->latent_channels();
  noise_ = random_numbers(image_tokens() * channels, kLatentSeed);
  latent_.emplace(upload_matrix(ctx_, noise_.data(), image_tokens(), channels));
}

// As generate() does: of every linear that the family does not keep in floating point.
void check_native_int8(const nn::Profile& profile, const Backend& backend) {
  const std::string reason = backend.why_not_native_int8();
  check(reason.empty(), "`require_int8`: {}", reason);
  for (const auto& [name, use] : profile.linears()) {
    check(use.precision == nn::Precision::kept || (use.int8 > 0 && use.floating == 0),
          "`require_int8`: the linear {} ran in floating point", name);
  }
}

// The first pass also chooses kernels. Numbers that are not finite would be timed as well as any,
// and be worth nothing.
void StepBencher::warm_up() {
  int done = 0;
  report("warm-up passes", done, 2);
  for (BenchedNetwork& branch : branches_) {
    nn::Profile profile(*backend_);
    profile.enter_network(branch.name);
    const nn::Matrix velocity = [&] {
      const Watching watching(ctx_, profile);
      return forward(branch);
    }();
    profile.collect();
    if (request_.require_int8) check_native_int8(profile, *backend_);
    std::vector<float> values(static_cast<size_t>(velocity.view().shape.elements()));
    download_matrix(ctx_, velocity, values.data());
    check(std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }),
          "bench step: the {} network returned a velocity that is not finite on {}", branch.name,
          backend_->name());
    report("warm-up passes", ++done, 2);
  }
}

// As generate() runs them, guided and recorded; the latent does not move, so all steps are alike.
void StepBencher::measure(StepBench& bench) {
  const int steps = kUnmeasuredSteps + request_.steps;
  const auto count = static_cast<size_t>(steps);
  const models::Schedule schedule = {
      .times = std::vector<float>(count + 1, kTime),
      .deltas = std::vector<float>(count, 0.0f),
      .guidance = std::vector<float>(count, branches_.size() > 1 ? kGuidance : 1.0f)};
  engine::Sampler sampler(ctx_, schedule, image_tokens(), latent_->column_count());
  std::vector<double> step_us;
  size_t allocations = 0;
  int64_t waits = 0;
  const auto velocity = [&](const ConstTensorView& z, int, size_t network, const TensorView& out) {
    BenchedNetwork& branch = branches_[network];
    branch.marks.first = backend_->mark();
    branch.run->velocity(z, 0, out);
    branch.marks.second = backend_->mark();
  };
  const auto on_step = [&](const engine::SamplerStep& step) {
    const bool is_measured = step.done > kUnmeasuredSteps;
    if (is_measured) {
      for (BenchedNetwork& branch : branches_) {
        branch.us.push_back(
            backend_->microseconds_between(branch.marks.first, branch.marks.second));
      }
      step_us.push_back(step.seconds * 1e6);
      bench.allocations = static_cast<int64_t>(backend_->memory().allocations - allocations);
      bench.waits = backend_->waits() - waits;
    }
    backend_->forget_marks();
    allocations = backend_->memory().allocations;
    waits = backend_->waits();
    if (step.done == kUnmeasuredSteps) power_.start();
    report("measured steps", std::max(step.done - kUnmeasuredSteps, 0), request_.steps);
    return true;
  };
  sampler.run(noise_, velocity, on_step);
  bench.power = power_.stop();
  bench.step_ms = measure::timing_of(step_us).median * 1e-3;
  for (const BenchedNetwork& branch : branches_) bench.launches += branch.run->launches();
}

// After the steps, when the device is as warm as they left it.
void StepBencher::find_ceilings(StepBench& bench) {
  ceilings_ = measure::measure_ceilings(*backend_);
  bench.int8_ceiling_tops = ceilings_.int8 * 1e-12;
  bench.bf16_ceiling_tops = ceilings_.bf16 * 1e-12;
  bench.copy_gb_per_s = ceilings_.copy * 1e-9;
}

StepBranch StepBencher::watch(BenchedNetwork& branch) {
  StepBranch result;
  result.name = branch.name;
  result.tokens = branch.text_tokens + image_tokens();
  const measure::Timing timing = measure::timing_of(branch.us);
  result.ms = timing.median * 1e-3;
  result.steadiness = measure::steadiness_of({timing});

  nn::Profile profile(*backend_);
  double watched_us = 0;
  for (int i = 0; i < kWatchedForwards; ++i) {
    const Watching watching(ctx_, profile);
    const size_t begin = backend_->mark();
    { const nn::Matrix velocity = forward(branch); }
    watched_us += backend_->microseconds_between(begin, backend_->mark());
    profile.collect();
  }

  const auto ms_each = [](double us) { return us * 1e-3 / kWatchedForwards; };
  result.watched_ms = ms_each(watched_us);
  double rest = watched_us;
  const auto share_of = [&](const nn::OpTime& time) {
    return measure::ceiling_share(time.work, time.us, ctx_.dtype, ceilings_);
  };
  for (const auto& [op, time] : profile.ops()) {
    result.ops.push_back({.op = op,
                          .calls = time.calls / kWatchedForwards,
                          .ms = ms_each(time.us),
                          .share = time.us / watched_us,
                          .operations = time.work.operations / kWatchedForwards,
                          .bytes = time.work.bytes / kWatchedForwards,
                          .tops = time.tops(),
                          .gb_per_s = time.us > 0 ? time.work.bytes / time.us * 1e-3 : 0,
                          .ceiling_share = share_of(time)});
    rest -= time.us;
    if (op == "gemm") result.int8_tops = time.tops();
  }
  std::sort(result.ops.begin(), result.ops.end(),
            [](const StepOp& a, const StepOp& b) { return a.ms > b.ms; });
  rest = std::max(rest, 0.0);
  result.ops.push_back({"other", 0, ms_each(rest), rest / watched_us});
  for (const auto& use : profile.kernels()) {
    result.kernels.push_back({use.layer, use.op, use.kernel, use.time.calls / kWatchedForwards,
                              ms_each(use.time.us), use.time.tops(), share_of(use.time)});
  }
  return result;
}

StepBench StepBencher::run() {
  check(why_no_weights_.empty(), "{}", why_no_weights_);
  count_weights();
  try {
    make_weights();
  } catch (const Error& error) {
    why_no_weights_ = error.what();  // as they would fail for each other size, after minutes
    throw;
  }
  weight_bytes_ = backend_->memory().used;
  return measured();
}

StepBench StepBencher::run_again(const StepBenchRequest& request) {
  check_request(request);
  request_.width = request.width;
  request_.height = request.height;
  request_.text_tokens = request.text_tokens;
  request_.attention = request.attention;
  request_.steps = request.steps;
  ctx_.scores = nn::scores_for(request.attention);
  latent_.reset();
  for (BenchedNetwork& branch : branches_) {
    branch.text_tokens = branch.network->sees_text() ? request.text_tokens : 0;
    branch.run.reset();
    branch.timeline.reset();
    branch.conditioning.reset();
    branch.us.clear();
  }
  if (weight_bytes_ == 0) return run();
  return measured();
}

StepBench StepBencher::measured() {
  StepBench bench;
  bench.weight_bytes = weight_bytes_;
  prepare();
  warm_up();
  backend_->reset_peak();  // choosing kernels takes memory that a step does not
  measure(bench);
  bench.peak_bytes = backend_->memory().peak;
  find_ceilings(bench);
  for (BenchedNetwork& branch : branches_) bench.branches.push_back(watch(branch));
  bench.device = backend_->description();
  bench.date = utc_now();
  bench.commit = commit();
  bench.activations = request_.activations;
  bench.linears = request_.linears;
  bench.attention = nn::mode_of(ctx_.scores);
  bench.threads = backend_->threads();
  bench.width = request_.width;
  bench.height = request_.height;
  bench.text_tokens = request_.text_tokens;
  bench.parameters = parameters_;
  bench.layers = branches_[0].network->unit_count() - 2;
  bench.steps = request_.steps;
  return bench;
}

}  // namespace

std::function<StepBench(const StepBenchRequest&)> step_bencher(const StepBenchRequest& networks,
                                                               const StepProgress& progress) {
  const models::Family& family = models::family_named(networks.family);
  return step_bencher(
      networks, [&](size_t network) { return family.synthetic_network(network, networks.layers); },
      progress);
}

std::function<StepBench(const StepBenchRequest&)> step_bencher(const StepBenchRequest& networks,
                                                               const MakeNetwork& make,
                                                               const StepProgress& progress) {
  check_request(networks);
  const auto bencher = std::make_shared<StepBencher>(networks, make, progress);
  return [bencher](const StepBenchRequest& request) { return bencher->run_again(request); };
}

double StepBench::ms() const {
  double sum = 0;
  for (const StepBranch& branch : branches) sum += branch.ms;
  return sum;
}

StepBench bench_step(const StepBenchRequest& request, const MakeNetwork& make,
                     const StepProgress& progress) {
  check_request(request);
  return StepBencher(request, make, progress).run();
}

StepBench bench_step(const StepBenchRequest& request, const StepProgress& progress) try {
  const models::Family& family = models::family_named(request.family);
  check(request.layers >= 1, "bench step: {} layers, expected at least 1", request.layers);
  return bench_step(
      request, [&](size_t network) { return family.synthetic_network(network, request.layers); },
      progress);
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
