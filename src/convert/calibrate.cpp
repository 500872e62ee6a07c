#include "convert/calibrate.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "convert/calibration_job.h"
#include "convert/calibration_state.h"
#include "convert/input_recorder.h"
#include "engine/noise.h"
#include "engine/sampler.h"
#include "formats/text.h"
#include "models/ideogram4/streamed_dit.h"

namespace octet::convert {
namespace {

using ideogram4::StreamedDit;

class Calibration {
 public:
  Calibration(nn::Context& ctx, ThreadPool& pool, const CalibrateRequest& request,
              const engine::OnProgress& on_progress)
      : ctx_{ctx.backend, ctx.dtype},
        watched_{ctx.backend, ctx.dtype, nullptr, &recorder_},
        pool_(pool),
        request_(request),
        on_progress_(on_progress),
        job_(request, ctx.dtype),
        key_(job_.key(pool)),
        widths_(job_.input_widths()),
        resident_(resident_blocks()),
        recorder_(ctx.backend, pool, request.rows, state_.statistics) {}

  quant::ActivationStatistics run() {
    if (!request_.state_path.empty()) state_ = read_state(request_.state_path, key_);
    check_state();
    if (state_.statistics.empty()) save();  // whether that works is better known now than later
    tell({engine::Stage::denoise, steps_done(), job_.steps()});
    while (state_.captions < job_.captions()) run_caption();
    if (!state_.complete) {
      check_complete();
      state_.complete = true;
      save();
    }
    return std::move(state_.statistics);
  }

 private:
  // A file with the right key may still have been changed by hand.
  void check_state() const {
    const std::string& path = request_.state_path;
    const bool fits = state_.captions <= job_.captions() && state_.steps < job_.schedule.steps() &&
                      (state_.captions < job_.captions() || state_.steps == 0);
    check(fits,
          "{}: says {} captions and {} steps, expected {} captions of {} steps; remove the "
          "file to begin anew",
          path, state_.captions, state_.steps, job_.captions(), job_.schedule.steps());
    check(state_.latent.empty() || state_.latent.size() == job_.elements(),
          "{}: its latent has {} numbers, expected {}; remove the file to begin anew", path,
          state_.latent.size(), job_.elements());
    for (const auto& [name, inputs] : state_.statistics) {
      const auto found = widths_.find(name);
      check(found != widths_.end() && found->second == inputs.k &&
                inputs.row_count() <= request_.rows,
            "{}: has inputs of {}, {} rows of {}, that are not the model's; remove the file to "
            "begin anew",
            path, in_quotes(name), inputs.row_count(), inputs.k);
    }
    if (state_.captions == job_.captions()) check_complete();
  }

  void check_complete() const {
    for (const auto& [name, k] : widths_) {
      check(
          state_.statistics.contains(name), "calibration: there are no inputs of the linear {}{}",
          name,
          request_.state_path.empty() ? "" : "; remove " + request_.state_path + " to begin anew");
    }
  }

  // Nobody is asked whether to go on between prepare() and the end of the first step: what is
  // saved then has to be the state before or the one after.
  void run_caption() {
    {
      const std::vector<float> features = encode();  // large, and not needed for long
      load();
      prepare(features);
    }
    std::vector<float> z = std::exchange(state_.latent, {});
    if (state_.steps == 0) {
      z = engine::make_noise(request_.seed, static_cast<uint64_t>(state_.captions),
                             job_.elements());
    }
    for (bool is_last = false; !is_last;) {
      const Stopwatch watch;
      z = step(std::move(z));
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
      tell({engine::Stage::denoise, steps_done(), job_.steps(), seconds});
    }
  }

  std::vector<float> encode() {
    constexpr int64_t kLayers = qwen3::kRunLayers;
    const auto& tokens = job_.tokens[static_cast<size_t>(state_.captions)];
    return job_.parts.text_encoder.encode(ctx_, pool_, tokens, [&](int64_t done) {
      tell({engine::Stage::text, done, kLayers});
    });
  }

  // The transformers, once.
  void load() {
    if (conditional_) return;
    const ideogram4::ModelFolders& folders = request_.folders;
    const auto [first, second] = resident_;
    const auto told = [&, in_all = first + second](int64_t before) {
      return [this, before, in_all](int64_t done) {
        tell({engine::Stage::load, before + done, in_all});
      };
    };
    conditional_.emplace(ctx_, pool_, folders.transformer, /*conditional=*/true, first, told(0));
    if (request_.conditional_only) return;
    unconditional_.emplace(ctx_, pool_, folders.unconditional, /*conditional=*/false, second,
                           told(first));
    unconditional_prompt_.emplace(
        unconditional_->prepare(ctx_, {}, job_.grid_height, job_.grid_width));
  }

  // How many blocks of each transformer stay in memory.
  std::pair<int64_t, int64_t> resident_blocks() const {
    const int64_t layers = job_.parts.dit.layers, branches = job_.branches();
    const CalibrateMemory memory = job_.memory();
    const uint64_t bound = request_.max_memory;
    int64_t blocks = branches * layers;
    if (bound != 0 && bound < memory.most) {
      check(bound >= memory.least,
            "calibration: takes {} bytes at least, and {} are allowed; allow more, or take a "
            "smaller image or shorter captions",
            memory.least, bound);
      blocks = static_cast<int64_t>((bound - memory.least) / job_.block_bytes());
    }
    const int64_t first = std::min(layers, ceil_div(blocks, branches));
    return {first, blocks - first};
  }

  void prepare(const std::vector<float>& features) {
    // What the text's linear gets is recorded with the first step, and not when going on behind it.
    nn::Context& ctx = state_.steps == 0 ? watched_ : ctx_;
    recorder_.begin({.branch = kConditional, .index = state_.captions, .count = job_.captions()});
    prompt_.reset();
    prompt_.emplace(conditional_->prepare(ctx, features, job_.grid_height, job_.grid_width));
  }

  std::vector<float> step(std::vector<float> z) {
    const auto at = static_cast<size_t>(state_.steps);
    const ideogram4::Schedule& all = job_.schedule;
    const ideogram4::Schedule one = {.times = {all.times[at], all.times[at + 1]},
                                     .deltas = {all.deltas[at]},
                                     .guidance = {all.guidance[at]}};
    return engine::sample(std::move(z), one,
                          [&](std::span<const float> latent, float time, engine::Branch branch) {
                            return velocity(latent, time, branch);
                          });
  }

  std::vector<float> velocity(std::span<const float> z, float time, engine::Branch branch) {
    const bool conditional = branch == engine::Branch::conditional;
    const ideogram4::DitPrompt& prompt = conditional ? *prompt_ : *unconditional_prompt_;
    recorder_.begin(conditional ? conditional_turn() : unconditional_turn());
    const nn::Matrix uploaded =
        nn::upload_matrix(ctx_, z.data(), prompt.image_tokens(), job_.parts.dit.latent_channels);
    std::vector<float> velocity(z.size());
    const StreamedDit& dit = conditional ? *conditional_ : *unconditional_;
    download_matrix(ctx_, dit.forward(watched_, prompt, uploaded, time), velocity.data());
    return velocity;
  }

  RecorderTurn conditional_turn() const {
    return {.branch = kConditional,
            .index = steps_done(),
            .count = job_.steps(),
            .text_rows = prompt_->text_tokens(),
            .image_rows = prompt_->image_tokens()};
  }

  RecorderTurn unconditional_turn() const {
    const auto begin = job_.schedule.guidance.begin();
    const int64_t unguided = std::count(begin, begin + state_.steps, 1.0f);
    return {.branch = kUnconditional,
            .index = state_.captions * job_.guided_steps + state_.steps - unguided,
            .count = job_.captions() * job_.guided_steps,
            .image_rows = unconditional_prompt_->image_tokens()};
  }

  void save() {
    if (!request_.state_path.empty()) {
      write_state(request_.state_path, key_, job_.parts.dit.latent_channels, state_);
    }
    saved_ = true;
    since_saved_ = Stopwatch();
  }

  void tell(const engine::GenerateProgress& progress) {
    if (!on_progress_ || on_progress_(progress)) return;
    if (!saved_) save();
    throw engine::Cancelled(fmt::format(
        "stopped on request; {} of {} steps of calibration are done", steps_done(), job_.steps()));
  }

  int64_t steps_done() const { return state_.captions * job_.schedule.steps() + state_.steps; }

  nn::Context ctx_;      // the caller's, which nobody watches
  nn::Context watched_;  // the same with the recorder
  ThreadPool& pool_;
  const CalibrateRequest& request_;
  const engine::OnProgress& on_progress_;
  CalibrationJob job_;
  std::string key_;
  std::map<std::string, int64_t> widths_;  // of the inputs of all linears
  std::pair<int64_t, int64_t> resident_;
  CalibrationState state_;
  InputRecorder recorder_;
  bool saved_ = true;  // nothing was done since the last time
  Stopwatch since_saved_;
  std::optional<StreamedDit> conditional_, unconditional_;
  std::optional<ideogram4::DitPrompt> prompt_, unconditional_prompt_;
};

}  // namespace

CalibrateMemory memory_for(const CalibrateRequest& request, DType dtype) {
  return CalibrationJob(request, dtype).memory();
}

quant::ActivationStatistics calibrate(nn::Context& ctx, ThreadPool& pool,
                                      const CalibrateRequest& request,
                                      const engine::OnProgress& on_progress) {
  return Calibration(ctx, pool, request, on_progress).run();
}

}  // namespace octet::convert
