// The parts of a model as those see them who load, run and convert it: a text encoder, networks
// that denoise, a decoder. Which model they belong to is not their business; see family.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/unset_vector.h"
#include "nn/context.h"
#include "nn/weights.h"
#include "quant/smoothing.h"
#include "weights/weight_source.h"

namespace octet::models {

// Tokens of a picture's latent.
struct Grid {
  int64_t height = 0, width = 0;

  int64_t tokens() const { return height * width; }
  bool operator==(const Grid&) const = default;
};

// A part with weights. They come in units that can be in memory by themselves, in the order in
// which the part runs: what precedes its blocks, then one for each block, then what follows.
// Running asks for each unit before its first use; by then whoever owns the part has brought it.
class Part {
 public:
  virtual ~Part() = default;

  virtual std::string_view name() const = 0;  // "transformer": its folder in a model
  // Where its weights come from.
  const weights::WeightSource& source() const { return source_; }
  weights::WeightSource& source() { return source_; }

  virtual int64_t unit_count() const = 0;
  // Those that every run takes: the first ones. What comes after them only prepares runs, so that
  // it need not be there while they follow one another.
  virtual int64_t pass_units() const { return unit_count(); }
  // Lists the weights of a unit, with the places where this part keeps them.
  virtual void visit(int64_t unit, nn::WeightVisitor& visitor) = 0;
  // Gives the memory of a unit back, and takes none: destructors call it.
  virtual void release(int64_t unit) = 0;
  // Tensors that its file may have and that are not read, by the name behind the prefix or, where
  // it has another, by the whole name.
  virtual bool is_ignored(std::string_view name) const = 0;

  void visit_all(nn::WeightVisitor& visitor) {
    for (int64_t unit = 0; unit < unit_count(); ++unit) visit(unit, visitor);
  }
  void release_all() {
    for (int64_t unit = 0; unit < unit_count(); ++unit) release(unit);
  }

  // Brings a unit into memory, where it stays at least until the next one is asked for. None: all
  // are there.
  using Bring = std::function<void(int64_t unit)>;
  void set_bring(Bring bring) { bring_ = std::move(bring); }

 protected:
  explicit Part(weights::WeightSource source = {}) : source_(std::move(source)) {}
  void need(int64_t unit) const {
    if (bring_) bring_(unit);
  }

 private:
  weights::WeightSource source_;
  Bring bring_;
};

class TextEncoder : public Part {
 public:
  using Part::Part;
  virtual int64_t feature_count() const = 0;  // of each token
  // Features F32 [tokens, feature_count()] in host memory. `progress` is told the units that ran;
  // may throw to stop.
  virtual UnsetVector<float> encode(nn::Context& ctx, const std::vector<int32_t>& tokens,
                                    const std::function<void(int64_t)>& progress) const = 0;
};

// What a network knows of a prompt and of a picture's size: the same for all steps.
class Conditioning {
 public:
  Conditioning(int64_t text_tokens, Grid grid) : text_tokens_(text_tokens), grid_(grid) {}
  virtual ~Conditioning() = default;
  int64_t text_tokens() const { return text_tokens_; }  // that the network sees before the image's
  const Grid& grid() const { return grid_; }

 private:
  int64_t text_tokens_;
  Grid grid_;
};

// What a network makes of the times of a schedule: the same for all pictures. A network that is
// asked for a velocity finds it at one of its steps.
class Timeline {
 public:
  explicit Timeline(std::span<const float> times) : times_(times.begin(), times.end()) {}
  virtual ~Timeline() = default;

  const std::vector<float>& times() const { return times_; }  // 0 for noise to 1 for a picture
  int64_t steps() const { return std::ssize(times_); }
  int64_t step() const { return step_; }
  // The step of the next velocities. What they read of it lies in the same memory for all steps, so
  // work that was recorded once can be run for each.
  void go_to(nn::Context& ctx, int64_t step) {
    check(step >= 0 && step < steps(), "timeline: step {} of {}", step, steps());
    step_ = step;
    arrive(ctx);
  }

 protected:
  virtual void arrive(nn::Context& ctx) = 0;  // at step()

 private:
  std::vector<float> times_;
  int64_t step_ = 0;
};

// Of one of a family's networks: velocity of the latent, given the time and the text.
class Network : public Part {
 public:
  using Part::Part;
  virtual int64_t latent_channels() const = 0;  // of a token
  virtual bool sees_text() const = 0;
  virtual int64_t text_features() const = 0;  // of each token of text; of no meaning without text

  // `features` as the text encoder left them; none for a network that sees no text.
  virtual std::unique_ptr<Conditioning> prepare(nn::Context& ctx, std::span<const float> features,
                                                const Grid& grid) const = 0;
  virtual std::unique_ptr<Timeline> make_timeline(nn::Context& ctx,
                                                  std::span<const float> times) const = 0;
  // The velocity `out` [image tokens, latent_channels()] at the step of the timeline; z has the
  // same shape.
  virtual void velocity(nn::Context& ctx, const Conditioning& conditioning, Timeline& timeline,
                        const ConstTensorView& z, const TensorView& out) const = 0;
  // One of several velocities of the same latent.
  struct Evaluation {
    const Conditioning* conditioning;
    TensorView out;
  };
  // Whether velocities() reads the weights once for all, with the bits of one velocity after the
  // other. It takes the working memory of all of them then.
  virtual bool can_batch() const { return false; }
  virtual void velocities(nn::Context& ctx, std::span<const Evaluation> evaluations,
                          Timeline& timeline, const ConstTensorView& z) const {
    for (const Evaluation& one : evaluations) {
      velocity(ctx, *one.conditioning, timeline, z, one.out);
    }
  }
  // The same at one time, for a single velocity.
  void velocity_at(nn::Context& ctx, const Conditioning& conditioning, const ConstTensorView& z,
                   float time, const TensorView& out) const {
    const auto timeline = make_timeline(ctx, {&time, 1});
    timeline->go_to(ctx, 0);
    velocity(ctx, conditioning, *timeline, z, out);
  }

  // --- for conversion ---

  // Its configuration as JSON, the same text for the same architecture: what a config.json says.
  virtual std::string config_text() const = 0;
  // Lists all weights that its file holds, also those that it never reads: a converted file stays
  // complete.
  virtual void visit_stored(nn::WeightVisitor& visitor) { visit_all(visitor); }
  // Activations that can be made smaller, and where that is paid back; names of the first layout.
  virtual std::vector<quant::SmoothGroup> smooth_groups() const { return {}; }
};

class Decoder : public Part {
 public:
  using Part::Part;
  virtual int64_t token_side() const = 0;       // pixels, along a side
  virtual int64_t latent_channels() const = 0;  // of a token
  // The most that decode() takes for images at a time: bytes of the device's memory beside weights
  // and what single ops need for themselves.
  virtual uint64_t image_bytes(const Grid& grid, DType dtype) const = 0;
  // The smallest bound on that (nn::Context::image_bytes) with which it decodes; slower, and with
  // the same picture.
  virtual uint64_t least_image_bytes(const Grid& grid, DType dtype) const {
    return image_bytes(grid, dtype);
  }
  // Latent F32 [tokens, latent_channels()] as sampled -> F32 [pixels, 3], about -1 to 1, rows from
  // the top. Throws Error when a number is not finite. `progress`, or nobody, is told the share
  // that is done, from 0 to 1; may throw to stop.
  virtual UnsetVector<float> decode(nn::Context& ctx, std::span<const float> latent,
                                    const Grid& grid,
                                    const std::function<void(double)>& progress) const = 0;
};

}  // namespace octet::models
