#include "convert/calibrate.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "convert/calibration_job.h"
#include "convert/input_recorder.h"
#include "engine/noise.h"
#include "engine/part_store.h"
#include "engine/sampler.h"
#include "formats/text.h"
#include "octet/error.h"

namespace octet::convert {
namespace {

class Calibration {
 public:
  Calibration(nn::Context& ctx, const CalibrateRequest& request,
              const OnRenderProgress& on_progress)
      : ctx_{ctx.backend, ctx.dtype},
        watched_{ctx.backend, ctx.dtype, nullptr, &recorder_},
        request_(request),
        on_progress_(on_progress),
        job_(request, ctx.dtype),
        key_(job_.key(ctx.backend.pool())),
        widths_(job_.input_widths()),
        resident_(resident_blocks()),
        recorder_(ctx.backend, request.rows, state_.statistics),
        text_store_(streamed(*job_.model.text_encoder)) {}

  quant::ActivationStatistics run() {
    if (!request_.state_path.empty()) state_ = read_state(request_.state_path, key_);
    check_state();
    if (state_.statistics.empty()) save();  // whether that works is better known now than later
    tell({Stage::denoise, steps_done(), job_.steps()});
    while (state_.captions < job_.captions()) run_caption();
    if (!state_.complete) {
      check_complete();
      state_.complete = true;
      save();
    }
    return std::move(state_.statistics);
  }

 private:
  // Its units come for each use, in floating point, as the recorder wants them.
  std::unique_ptr<engine::PartStore> streamed(models::Part& part) const {
    auto store = std::make_unique<engine::PartStore>(part, ctx_, Residency::streamed);
    store->rules().int8 = false;
    return store;
  }

  // A file with the right key may still have been changed by hand.
  void check_state() const {
    const std::string& path = request_.state_path;
    const bool fits = state_.captions <= job_.captions() && state_.steps < job_.schedule.steps() &&
                      (state_.captions < job_.captions() || state_.steps == 0);
    check(fits,
          "{}: says {} captions and {} steps, expected {} captions of {} steps; remove the "
          "file to start again",
          path, state_.captions, state_.steps, job_.captions(), job_.schedule.steps());
    check(state_.latent.empty() || state_.latent.size() == job_.elements(),
          "{}: its latent has {} numbers, expected {}; remove the file to start again", path,
          state_.latent.size(), job_.elements());
    for (const auto& [name, inputs] : state_.statistics) {
      const auto found = widths_.find(name);
      check(found != widths_.end() && found->second == inputs.k &&
                inputs.row_count() <= request_.rows,
            "{}: has inputs of {}, {} rows of {}, that are not the model's; remove the file to "
            "start again",
            path, in_quotes(name), inputs.row_count(), inputs.k);
    }
    if (state_.captions == job_.captions()) check_complete();
  }

  void check_complete() const {
    for (const auto& [name, k] : widths_) {
      check(
          state_.statistics.contains(name), "calibration: there are no inputs of the linear {}{}",
          name,
          request_.state_path.empty() ? "" : "; remove " + request_.state_path + " to start again");
    }
  }

  // Nobody is asked whether to go on between prepare() and the end of the first step: what is
  // saved then has to be the state before or the one after.
  void run_caption() {
    {
      // Large, and not needed for long.
      const auto features = encode(job_.tokens[static_cast<size_t>(state_.captions)]);
      const auto negative = encode(job_.negative_tokens);
      load();
      prepare(features, negative);
    }
    std::vector<float> z = std::exchange(state_.latent, {});
    if (state_.steps == 0) {
      z = engine::make_noise(request_.seed, static_cast<uint64_t>(state_.captions),
                             job_.elements());
    }
    for (bool is_last = false; !is_last;) {
      const Stopwatch watch;
      z = step(z);
      const double seconds = watch.microseconds() * 1e-6;
      is_last = ++state_.steps == job_.schedule.steps();
      if (is_last) {
        ++state_.captions;
        state_.steps = 0;
        state_.latent.clear();
      } else {
        state_.latent = z;
      }
      saved_ = false;
      const bool is_due = since_saved_.microseconds() * 1e-6 >= request_.save_every_s;
      if (is_due) save();
      tell({Stage::denoise, steps_done(), job_.steps(), seconds});
    }
  }

  UnsetVector<float> encode(const std::vector<int32_t>& tokens) {
    if (tokens.empty()) return {};
    const models::TextEncoder& encoder = *job_.model.text_encoder;
    const int64_t layers = encoder.unit_count() - 1;  // behind the embedding
    auto features = encoder.encode(ctx_, tokens, [&](int64_t done) {
      tell({Stage::text, done, layers});
    });
    text_store_->end_use();
    return features;
  }

  // The networks, once: what precedes their blocks, and those that stay.
  void load() {
    if (!stores_.empty()) return;
    int64_t done = 0, in_all = 0;
    for (const int64_t count : resident_) in_all += count;
    for (size_t i = 0; i < job_.networks(); ++i) {
      models::Network& network = *job_.model.networks[i];
      engine::PartStore& store = *stores_.emplace_back(streamed(network));
      const bool all = resident_[i] == job_.blocks(i);
      const int64_t staying = all ? network.pass_units() : 1 + resident_[i];
      store.set_resident_units(staying);
      for (int64_t unit = 0; unit < staying; ++unit) {
        store.bring(unit);
        if (unit >= 1 && unit <= resident_[i]) tell({Stage::load, ++done, in_all});
      }
    }
    conditionings_.resize(job_.branches().size());
  }

  // How many blocks of each network stay in memory.
  std::vector<int64_t> resident_blocks() const {
    const CalibrateMemory memory = job_.memory();
    const uint64_t bound = request_.max_memory;
    int64_t left = 0;
    for (size_t i = 0; i < job_.networks(); ++i) left += job_.blocks(i);
    if (bound != 0 && bound < memory.most) {
      check(bound >= memory.least,
            "calibration: takes {} bytes at least, and {} are allowed; allow more, or take a "
            "smaller image or shorter captions",
            memory.least, bound);
      left = static_cast<int64_t>((bound - memory.least) / job_.block_bytes());
    }
    // Even shares, and what a smaller network leaves over goes to the others.
    std::vector<int64_t> resident(job_.networks());
    std::vector<size_t> order(job_.networks());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return job_.blocks(a) < job_.blocks(b); });
    for (auto sharing = std::ssize(order); const size_t i : order) {
      resident[i] = std::min(job_.blocks(i), ceil_div(left, int64_t{sharing--}));
      left -= resident[i];
    }
    return resident;
  }

  void prepare(std::span<const float> features, std::span<const float> negative) {
    using models::BranchText;
    for (size_t i = 0; i < job_.branches().size(); ++i) {
      const models::Branch& branch = job_.branches()[i];
      if (branch.network >= job_.networks()) continue;
      // The same for all captions.
      if (branch.sees != BranchText::prompt && conditionings_[i] != nullptr) continue;
      // What the text's linear gets is recorded with the first step, and not when going on behind
      // it.
      nn::Context& ctx = state_.steps == 0 ? watched_ : ctx_;
      recorder_.begin({.network = job_.name_of_network(branch.network),
                       .index = state_.captions,
                       .count = job_.captions()});
      conditionings_[i].reset();
      const auto seen = branch.sees == BranchText::prompt     ? features
                        : branch.sees == BranchText::negative ? negative
                                                              : std::span<const float>();
      conditionings_[i] = job_.model.networks[branch.network]->prepare(ctx, seen, job_.grid);
    }
  }

  std::vector<float> step(const std::vector<float>& z) {
    const auto at = static_cast<size_t>(state_.steps);
    const models::Schedule& all = job_.schedule;
    const models::Schedule one = {.times = {all.times[at], all.times[at + 1]},
                                  .deltas = {all.deltas[at]},
                                  .guidance = {all.guidance[at]}};
    engine::Sampler sampler(ctx_, one, job_.branches(), job_.grid.tokens(), job_.latent_channels());
    return sampler.run(z, engine::one_by_one([&](const ConstTensorView& latent, int, size_t branch,
                                                 const TensorView& out) {
                         velocity(latent, one.times.front(), branch, out);
                       }));
  }

  void velocity(const ConstTensorView& z, float time, size_t branch, const TensorView& out) {
    const size_t index = job_.branches()[branch].network;
    recorder_.begin(turn_of(branch));
    job_.model.networks[index]->velocity_at(watched_, *conditionings_[branch], z, time, out);
    stores_[index]->end_use();
  }

  // Of all runs of the branch's network.
  RecorderTurn turn_of(size_t branch) const {
    const size_t network = job_.branches()[branch].network;
    const auto step = static_cast<int>(state_.steps);
    const int64_t of_caption = job_.runs(network, job_.schedule.steps());
    const float guidance = job_.schedule.guidance[static_cast<size_t>(step)];
    int64_t before = job_.runs(network, step);
    for (const models::Branch& other : job_.branches().first(branch)) {
      before += other.network == network && other.weight_at(guidance) != 0 ? 1 : 0;
    }
    return {.network = job_.name_of_network(network),
            .index = state_.captions * of_caption + before,
            .count = job_.captions() * of_caption,
            .text_rows = conditionings_[branch]->text_tokens(),
            .image_rows = job_.grid.tokens()};
  }

  void save() {
    if (!request_.state_path.empty()) {
      write_state(request_.state_path, key_, job_.latent_channels(), state_);
    }
    saved_ = true;
    since_saved_ = Stopwatch();
  }

  void tell(const RenderProgress& progress) {
    if (!on_progress_ || on_progress_(progress)) return;
    if (!saved_) save();
    throw Cancelled(fmt::format(
        "stopped on request; {} of {} steps of calibration are done{}", steps_done(), job_.steps(),
        request_.state_path.empty() ? "" : "; the same command resumes from here"));
  }

  int64_t steps_done() const { return state_.captions * job_.schedule.steps() + state_.steps; }

  nn::Context ctx_;      // the caller's, which nobody watches
  nn::Context watched_;  // the same with the recorder
  const CalibrateRequest& request_;
  const OnRenderProgress& on_progress_;
  CalibrationJob job_;
  std::string key_;
  std::map<std::string, int64_t> widths_;  // of the inputs of all linears
  std::vector<int64_t> resident_;          // blocks of each network that stay in memory
  CalibrationState state_;
  InputRecorder recorder_;
  bool saved_ = true;  // nothing was done since the last time
  Stopwatch since_saved_;
  std::unique_ptr<engine::PartStore> text_store_;
  std::vector<std::unique_ptr<engine::PartStore>> stores_;            // of each network
  std::vector<std::unique_ptr<models::Conditioning>> conditionings_;  // of each branch
};

}  // namespace

CalibrateMemory memory_for(const CalibrateRequest& request, DType dtype) {
  return CalibrationJob(request, dtype).memory();
}

quant::ActivationStatistics calibrate(nn::Context& ctx, const CalibrateRequest& request,
                                      const OnRenderProgress& on_progress) {
  return Calibration(ctx, request, on_progress).run();
}

}  // namespace octet::convert
