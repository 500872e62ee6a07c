#include "measure/bench/step_bencher.h"

#include <algorithm>
#include <cmath>

#include "backend/host_backend.h"
#include "base/env.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "base/log.h"
#include "base/random_value.h"
#include "base/stopwatch.h"
#include "base/utc.h"
#include "devices/select.h"
#include "engine/linears_ran.h"
#include "engine/network_run.h"
#include "engine/sampler.h"
#include "measure/power_meter.h"
#include "measure/timing.h"
#include "models/footprint.h"
#include "nn/attention.h"
#include "nn/linear_list.h"
#include "nn/profile.h"
#include "octet/version.h"
#include "weights/random_weights.h"

namespace octet::measure {
namespace {

constexpr int kUnmeasuredSteps = 2;  // the first plans its memory, the second is recorded
constexpr float kTime = 0.5f;        // any moment takes as long
constexpr float kGuidance = 7;
constexpr int64_t kManyWeights = 1'000'000'000;
constexpr double kUsualShareOfCeiling = 0.6;  // what a step reaches of it on a CPU, roughly

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
              "`require_int8`: the networks' linears were requested in floating point; leave "
              "`linears` out");
}

std::vector<float> random_numbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = random_value(seed, i);
  return numbers;
}

// Of one thread.
double seconds_for_random_weight() {
  constexpr int64_t kTried = 1 << 18;
  std::vector<float> numbers(kTried);
  const weights::RandomTensor tensor{.name = "tried", .shape = {kTried}, .inputs = 0};
  const Stopwatch watch;
  weights::fill_random(0, tensor, {}, 0, numbers);
  return watch.microseconds() * 1e-6 / kTried;
}

const StepBenchRequest& checked(const StepBenchRequest& request) {
  check_request(request);
  return request;
}

}  // namespace

StepBencher::StepBencher(const StepBenchRequest& request, const MakeNetwork& make,
                         const StepProgress& progress)
    : request_(checked(request)),
      progress_(progress),
      family_(models::family_named(request.family)),
      token_side_(family_.sizes.token_side),
      int8_(request.linears == Linears::int8),
      backend_(select_backend({.device = request.device,
                               .threads = request.threads,
                               .tune = request.tuning,
                               .memory_limit = request.max_memory})),
      ctx_{.backend = *backend_,
           .dtype = dtype_of(request),
           .scores = nn::scores_for(request.attention)},
      power_(*backend_) {
  for (size_t i = 0; i < family_.networks.size(); ++i) networks_.push_back({make(i), nullptr});
  for (const models::Branch& row : family_.branches) branches_.emplace_back().row = row;
}

void StepBencher::plan_budget() {
  std::vector<models::Network*> networks;
  for (BenchedNetwork& each : networks_) networks.push_back(each.network.get());
  budgeted_ = std::make_unique<BudgetedNetworks>(
      ctx_, family_, networks,
      models::RunAs{.dtype = ctx_.dtype, .int8 = int8_, .scores = ctx_.scores},
      models::Extent{.grid = grid(), .text_tokens = request_.text_tokens}, request_.max_memory);
}

void StepBencher::count_weights() {
  weights::WeightCount count(ctx_.dtype, int8_, backend_.get());
  for (BenchedNetwork& each : networks_) each.network->visit_all(count);
  parameters_ = count.parameters();
  if (request_.max_memory > 0) return plan_budget();
  if (!keeps_data_on_host(*backend_)) return;
  // The largest weight twice: it is there in two forms while it is made. And a host's features.
  double staged = 0, features = 0;
  nn::LinearList list;
  std::vector<models::Network*> networks;
  for (BenchedNetwork& each : networks_) {
    each.network->visit_all(list);
    networks.push_back(each.network.get());
    features = std::max(
        features, 4.0 * static_cast<double>(request_.text_tokens * each.network->text_features()));
  }
  for (const nn::LinearSpec& spec : list.large()) {
    staged = std::max(staged, static_cast<double>(spec.n() * spec.k));
  }
  const auto work =
      models::denoising_bytes(networks, {.grid = grid(), .text_tokens = request_.text_tokens},
                              {.dtype = ctx_.dtype, .int8 = int8_, .scores = ctx_.scores});
  const double bytes =
      static_cast<double>(count.bytes()) + static_cast<double>(work.all()) + features + staged;
  check_free_memory(fmt::format("bench step: {} layers at {} x {} pixels", request_.layers,
                                request_.width, request_.height),
                    bytes, sentence("give fewer `layers` or a smaller `size`"));
  if (parameters_ >= kManyWeights) announce(bytes);
}

// On a CPU the whole model takes minutes, which is said before they pass.
void StepBencher::announce(double bytes) {
  const double random_s = seconds_for_random_weight() * static_cast<double>(parameters_) /
                          std::max(backend_->threads(), 1);
  const double each_network =
      static_cast<double>(parameters_) / static_cast<double>(networks_.size());
  double operations = 0;
  for (const BenchedBranch& branch : branches_) {
    operations += 2 * each_network * static_cast<double>(text_tokens(branch) + image_tokens());
  }
  const int passes = 1 + kUnmeasuredSteps + request_.steps + kWatchedPasses;
  const Ceilings ceilings = measure_ceilings(*backend_);
  const double rate = int8_ ? ceilings.int8 : ceilings.bf16;
  const double steps_s = rate > 0 ? passes * operations / (kUsualShareOfCeiling * rate) : 0;
  log::write(log::Level::info,
             fmt::format("bench step: {:.1f} billion weights and {:.1f} GB of memory, about {} "
                         "min on this CPU; fewer layers or pixels take less",
                         static_cast<double>(parameters_) * 1e-9, bytes * 1e-9,
                         static_cast<int64_t>(std::ceil((random_s + steps_s) / 60))));
}

void StepBencher::make_weights() {
  constexpr int64_t kUnit = 1'000'000;
  int64_t done = 0;
  const auto progress = [&](int64_t weights) {
    done += weights;
    report("million weights", done / kUnit, parameters_ / kUnit);
  };
  progress(0);
  if (budgeted_) return budgeted_->load(progress);
  uint64_t seed = 0;
  for (BenchedNetwork& each : networks_) {
    weights::RandomWeights make(
        *backend_, {.seed = ++seed, .dtype = ctx_.dtype, .int8 = int8_, .progress = progress});
    each.network->visit_all(make);
  }
}

void StepBencher::prepare() {
  constexpr uint64_t kFeatureSeed = 3, kLatentSeed = 4;
  for (BenchedNetwork& each : networks_) {
    each.timeline = each.network->make_timeline(ctx_, {&kTime, 1});
    each.timeline->go_to(ctx_, 0);
  }
  for (BenchedBranch& branch : branches_) {
    auto& [network, timeline] = networks_[branch.row.network];
    const auto features =
        random_numbers(text_tokens(branch) * network->text_features(), kFeatureSeed);
    branch.conditioning = network->prepare(ctx_, features, grid());
    branch.run = std::make_unique<engine::NetworkRun>(ctx_, *network, *timeline, /*stays=*/true);
  }
  const int64_t channels = networks_.front().network->latent_channels();
  noise_ = random_numbers(image_tokens() * channels, kLatentSeed);
  latent_.emplace(upload_matrix(ctx_, noise_.data(), image_tokens(), channels));
}

// The first pass also chooses kernels. Numbers that are not finite would be timed as well as any,
// and be worth nothing.
void StepBencher::warm_up() {
  int done = 0;
  const auto total = std::ssize(branches_);
  report("warm-up passes", done, total);
  for (BenchedBranch& branch : branches_) {
    nn::Profile profile(*backend_);
    profile.enter_network(family_.networks[branch.row.network].name);
    const nn::Matrix velocity = [&] {
      const Watching watching(ctx_, profile);
      return forward(branch, behind(branch));
    }();
    profile.collect();
    if (request_.require_int8) {
      engine::check_native(*backend_);
      engine::check_native(profile.linears());
    }
    std::vector<float> values(static_cast<size_t>(velocity.view().shape.elements()));
    download_matrix(ctx_, velocity, values.data());
    check(std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }),
          "bench step: the {} branch returned a velocity that is not finite on {}", branch.row.name,
          backend_->name());
    report("warm-up passes", ++done, total);
  }
}

// As generate() runs them, guided and recorded; the latent does not move, so all steps are alike.
void StepBencher::measure(StepBench& bench) {
  const int steps = kUnmeasuredSteps + request_.steps;
  const auto count = static_cast<size_t>(steps);
  const models::Schedule schedule = {
      .times = std::vector<float>(count + 1, kTime),
      .deltas = std::vector<float>(count, 0.0f),
      .guidance =
          std::vector<float>(count, models::takes_guidance(family_.branches) ? kGuidance : 1.0f)};
  engine::Sampler sampler(ctx_, schedule, family_.branches, image_tokens(),
                          latent_->column_count());
  std::vector<double> step_us;
  size_t allocations = 0;
  int64_t waits = 0;
  const auto velocity = [&](const ConstTensorView& z, int, size_t index, const TensorView& out) {
    BenchedBranch& branch = branches_[index];
    expect(behind(branch));
    branch.marks.first = backend_->mark();
    branch.run->velocity(z, 0, *branch.conditioning, out);
    branch.marks.second = backend_->mark();
    if (budgeted_ && &branch == &branches_.back()) budgeted_->passes_are_recorded();
  };
  const auto on_step = [&](const engine::SamplerStep& step) {
    const bool is_measured = step.done > kUnmeasuredSteps;
    if (is_measured) {
      for (BenchedBranch& branch : branches_) {
        branch.us.push_back(
            backend_->microseconds_between(branch.marks.first, branch.marks.second));
      }
      step_us.push_back(step.seconds * 1e6);
      bench.allocations = static_cast<int64_t>(backend_->memory().allocations - allocations);
      bench.waits = backend_->waits() - waits;
    }
    // The last two steps are watched: copies for the last begin in the one before.
    if (budgeted_ && step.done == steps) read_timeline(bench);
    if (!budgeted_ || step.done != steps - 1) backend_->forget_marks();
    if (budgeted_ && step.done == steps - 2) budgeted_->watch();
    allocations = backend_->memory().allocations;
    waits = backend_->waits();
    if (step.done == kUnmeasuredSteps) power_.start();
    report("measured steps", std::max(step.done - kUnmeasuredSteps, 0), request_.steps);
    return true;
  };
  sampler.run(noise_, engine::one_by_one(velocity), on_step);
  bench.power = power_.stop();
  bench.step_ms = measure::timing_of(step_us).median * 1e-3;
  for (const BenchedBranch& branch : branches_) bench.launches += branch.run->launches();
}

void StepBencher::read_timeline(StepBench& bench) {
  std::vector<BudgetedNetworks::Pass> passes;
  for (const BenchedBranch& branch : branches_) {
    passes.push_back({std::string(branch.row.name), branch.row.network, branch.marks});
  }
  bench.timeline = budgeted_->timeline(passes);
}

void StepBencher::check_budget() const {
  check_value(request_.max_memory == 0 || !keeps_data_on_host(*backend_), "max_memory",
              "`max_memory`: the {} has no memory of its own that layers could come to; use a GPU",
              backend_->name());
}

StepBench StepBencher::run() {
  check(why_no_weights_.empty(), "{}", why_no_weights_);
  count_weights();
  try {
    if (budgeted_) ceilings_ = measure::measure_ceilings(*backend_);
    make_weights();
  } catch (const Error& error) {
    why_no_weights_ = error.sentence();  // as they would fail for each other size, after minutes
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
  for (BenchedBranch& branch : branches_) {
    branch.run.reset();
    branch.conditioning.reset();
    branch.us.clear();
  }
  for (BenchedNetwork& each : networks_) each.timeline.reset();
  if (weight_bytes_ == 0) return run();
  return measured();
}

StepBench StepBencher::measured() {
  StepBench bench;
  bench.weight_bytes = weight_bytes_;
  prepare();
  if (budgeted_) budgeted_->open(/*records=*/false);
  warm_up();
  backend_->reset_peak();  // choosing kernels takes memory that a step does not
  if (budgeted_) budgeted_->open(env::graph());
  measure(bench);
  bench.peak_bytes = backend_->memory().peak;
  if (budgeted_) {
    // What was recorded has the memory that the passes below take.
    for (BenchedBranch& branch : branches_) branch.run.reset();
    backend_->trim_memory();
    bench.max_memory = request_.max_memory;
    bench.context_bytes = backend_->memory_limit().unavailable;
    bench.plan = budgeted_->plan().places;
    bench.streamed_bytes = budgeted_->plan().streamed_bytes;
  }
  find_ceilings(bench);
  for (BenchedBranch& branch : branches_) bench.branches.push_back(watch(branch));
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
  bench.layers = networks_[0].network->pass_units() - 2;
  bench.steps = request_.steps;
  return bench;
}

}  // namespace octet::measure
