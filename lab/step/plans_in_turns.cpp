// plans_in_turns [--size 1024] [--text-tokens 512] [--layers 34] [--steps 20] [--rounds 4]
//                [--device cuda] [--attention bf16] FOLDER...
//
// Which plan file makes the faster step? Each FOLDER is a value of OCTET_CACHE_DIR: its plans say
// which kernel runs which GEMM, and missing plans are tuned first. One process makes random
// weights once; the step then runs with each folder's kernels in turn, forwards and backwards, at
// the power limit throughout. On an H200 that tells 0.1 to 0.2 % apart, where two processes differ
// by 0.3 % and two machines by 1.2 (docs/notebook.md).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random_value.h"
#include "devices/select.h"
#include "engine/network_run.h"
#include "engine/sampler.h"
#include "measure/power_meter.h"
#include "measure/timing.h"
#include "models/family.h"
#include "nn/attention.h"
#include "octet/model_options.h"
#include "weights/random_weights.h"

namespace octet {
namespace {

constexpr int kUnmeasuredSteps = 2;  // the first plans its memory, the second is recorded
constexpr float kTime = 0.5f, kGuidance = 7;

struct Options {
  std::map<std::string, std::string> flags = {
      {"size", "1024"}, {"text-tokens", "512"}, {"layers", "34"},     {"steps", "20"},
      {"rounds", "4"},  {"device", "cuda"},     {"attention", "bf16"}};
  std::vector<std::string> folders;

  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word.rfind("--", 0) != 0) {
        folders.push_back(word);
        continue;
      }
      const auto flag = flags.find(word.substr(2));
      check(flag != flags.end() && i + 1 < argc, "{}: no such flag, or its value is missing", word);
      flag->second = argv[++i];
    }
    check(!folders.empty(), "usage: plans_in_turns [--steps N] ... FOLDER...");
  }
  nn::AttentionScores scores() const {
    const std::string& word = flags.at("attention");
    check(word == "bf16" || word == "int8", "--attention {}: expected bf16 or int8", word);
    return nn::scores_for(word == "int8" ? AttentionMode::int8 : AttentionMode::floating);
  }
  int number(const std::string& name) const {
    const std::string& text = flags.at(name);
    int value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(status == std::errc() && end == text.data() + text.size() && value > 0,
          "--{} is '{}', expected a whole number above 0", name, text);
    return value;
  }
};

std::vector<float> random_numbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = random_value(seed, i);
  return numbers;
}

using Networks = std::vector<std::unique_ptr<models::Network>>;

// The networks as one folder's plans run them.
class Contestant {
 public:
  Contestant(const Options& options, std::string folder, const models::Family& family,
             std::unique_ptr<Backend> backend, const Networks& networks)
      : folder_(std::move(folder)),
        branches_(family.branches),
        networks_(networks),
        backend_(std::move(backend)),
        ctx_{.backend = *backend_, .dtype = DType::bf16, .scores = options.scores()},
        power_(*backend_) {
    const int side = options.number("size") / family.sizes.token_side;
    tokens_ = int64_t{side} * side;
    for (const auto& network : networks) {
      const int64_t text = network->sees_text() ? options.number("text-tokens") : 0;
      Part& part = parts_.emplace_back();
      part.conditioning = network->prepare(ctx_, random_numbers(text * network->text_features(), 3),
                                           models::Grid{side, side});
      part.timeline = network->make_timeline(ctx_, {&kTime, 1});
      part.timeline->go_to(ctx_, 0);
    }
  }

  // Recorded again, as `steps` steps after the first two.
  void run(int steps) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].run = std::make_unique<engine::NetworkRun>(ctx_, *networks_[i], *parts_[i].timeline,
                                                           /*stays=*/true);
      parts_[i].us.clear();
    }
    const auto count = static_cast<size_t>(kUnmeasuredSteps + steps);
    const models::Schedule schedule = {.times = std::vector<float>(count + 1, kTime),
                                       .deltas = std::vector<float>(count, 0.0f),
                                       .guidance = std::vector<float>(count, kGuidance)};
    const int64_t channels = networks_[0]->latent_channels();
    engine::Sampler sampler(ctx_, schedule, branches_, tokens_, channels);
    const auto velocity = [&](const ConstTensorView& z, int, size_t branch, const TensorView& out) {
      Part& part = parts_[branch];
      part.begin = backend_->mark();
      part.run->velocity(z, 0, *part.conditioning, out);
      part.end = backend_->mark();
    };
    const auto on_step = [&](const engine::SamplerStep& step) {
      for (Part& part : parts_) {
        if (step.done <= kUnmeasuredSteps) continue;
        part.us.push_back(backend_->microseconds_between(part.begin, part.end));
      }
      backend_->forget_marks();
      if (step.done == kUnmeasuredSteps) power_.start();
      return true;
    };
    sampler.run(random_numbers(tokens_ * channels, 4), engine::one_by_one(velocity), on_step);
    const PowerUse power = power_.stop();
    std::string line;
    double sum = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const double ms = measure::timing_of(parts_[i].us).median * 1e-3;
      line += fmt::format("{:8.2f}", ms);
      parts_[i].ms.push_back(ms);
      sum += ms;
    }
    step_ms_.push_back(sum);
    fmt::print("{}{:9.2f}  {:4.0f} W {:5.0f} MHz  {}\n", line, sum, power.mean_w, power.mean_mhz,
               folder_);
    std::fflush(stdout);
  }

  // The turns so far were not counted.
  void forget() {
    step_ms_.clear();
    for (Part& part : parts_) part.ms.clear();
  }
  double step_ms() const { return measure::timing_of(step_ms_).median; }
  void print_medians(double of_first) const {
    for (const Part& part : parts_) fmt::print("{:8.2f}", measure::timing_of(part.ms).median);
    fmt::print("{:9.2f}  {:+.2f} %  {}\n", step_ms(), 100 * (step_ms() / of_first - 1), folder_);
  }

 private:
  struct Part {
    std::unique_ptr<models::Conditioning> conditioning;
    std::unique_ptr<models::Timeline> timeline;
    std::unique_ptr<engine::NetworkRun> run;
    size_t begin = 0, end = 0;  // marks around its latest pass
    std::vector<double> us;     // of a turn's steps
    std::vector<double> ms;     // medians of the turns
  };

  std::string folder_;
  std::span<const models::Branch> branches_;  // one of each network
  const Networks& networks_;
  std::unique_ptr<Backend> backend_;
  nn::Context ctx_;
  measure::PowerMeter power_;
  std::vector<Part> parts_;
  std::vector<double> step_ms_;  // of each turn
  int64_t tokens_ = 0;
};

void run(int argc, char** argv) {
  const Options options(argc, argv);
  const models::Family& family = models::family_named("ideogram4");
  for (const char* name : {"text-tokens", "layers", "steps", "rounds"}) options.number(name);
  options.scores();
  models::check_image_size({options.number("size"), options.number("size")}, family.sizes);
  std::vector<std::unique_ptr<Backend>> backends;
  for (const std::string& folder : options.folders) {
    setenv("OCTET_CACHE_DIR", folder.c_str(), 1);  // a backend reads it when it is made
    backends.push_back(select_backend({.device = options.flags.at("device")}));
  }
  Networks networks;
  for (size_t i = 0; i < family.networks.size(); ++i) {
    networks.push_back(family.synthetic_network(i, options.number("layers")));
    weights::RandomWeights make(*backends[0], {.seed = i + 1});
    networks.back()->visit_all(make);
  }
  backends[0]->synchronize();
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (size_t i = 0; i < backends.size(); ++i) {
    contestants.push_back(std::make_unique<Contestant>(options, options.folders[i], family,
                                                       std::move(backends[i]), networks));
  }
  for (const models::NetworkInfo& info : family.networks) fmt::print("{:.7} ", info.name);
  fmt::print("and step, ms\n");
  std::vector<Contestant*> order;
  for (const auto& contestant : contestants) order.push_back(contestant.get());
  for (Contestant* contestant : order) contestant->run(1);  // chooses kernels
  for (Contestant* contestant : order) contestant->forget();
  for (int round = 0; round < options.number("rounds"); ++round) {
    for (Contestant* contestant : order) contestant->run(options.number("steps"));
    std::reverse(order.begin(), order.end());
  }
  fmt::print("medians of the turns\n");
  for (const auto& contestant : contestants) {
    contestant->print_medians(contestants.front()->step_ms());
  }
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  try {
    octet::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plans_in_turns: %s\n", error.what());
    return 1;
  }
}
