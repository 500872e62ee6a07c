// The parts of the toy family: an encoder of bytes, a network of two blocks, a linear for pixels.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/part.h"
#include "nn/linear.h"

namespace octet::test {

// Channels: of 48 INT8 kernels make whole steps and ConvRot groups of 16; 22 fit neither, and are
// not rotated at all.
struct ToyShape {
  static constexpr int64_t kHidden = 48, kFfn = 22, kText = 10, kLatent = 6, kWaves = 8;
  static constexpr int64_t kBlocks = 2;
  static constexpr int kTokenSide = 4;
};

inline constexpr const char* kToyDenoiser = "denoiser";
inline constexpr const char* kToyEncoder = "byte_encoder";
inline constexpr const char* kToyDecoder = "pixel_decoder";
inline constexpr const char* kToyDenoiserClass = "ToyDenoiser";
inline constexpr float kToyEps = 1e-5f;

inline nn::LinearSpec toy_linear(const std::string& name, int64_t n, int64_t k, bool bias,
                                 bool large = false) {
  const size_t dot = name.rfind('.');
  return {.layer = dot == name.npos ? name : name.substr(dot + 1),
          .k = k,
          .bias = bias,
          .layouts = {{{name, n}}},
          .large = large};
}

// --- text ---

class ToyEncoder : public models::TextEncoder {
 public:
  explicit ToyEncoder(weights::WeightSource source = {}) : TextEncoder(std::move(source)) {}

  static constexpr int64_t kVocabulary = 257;
  std::string_view name() const override { return kToyEncoder; }
  int64_t unit_count() const override { return 2; }
  void visit(int64_t unit, nn::WeightVisitor& visitor) override {
    if (unit == 0) return visitor.table(bytes_, "bytes.weight", kVocabulary, ToyShape::kText);
    visitor.linear(blend_, toy_linear("blend", ToyShape::kText, ToyShape::kText, /*bias=*/true));
  }
  void release(int64_t unit) override {
    if (unit == 0) {
      bytes_ = {};
    } else {
      blend_ = {};
    }
  }
  bool is_ignored(std::string_view) const override { return false; }
  int64_t feature_count() const override { return ToyShape::kText; }
  // For tests: a text of this length makes encode() throw.
  static inline size_t refused = 0;
  UnsetVector<float> encode(nn::Context& ctx, const std::vector<int32_t>& tokens,
                            const std::function<void(int64_t)>& progress) const override {
    check(tokens.size() != refused, "toy: does not like {} tokens", refused);
    const auto n = static_cast<int64_t>(tokens.size());
    need(0);
    const nn::Matrix h = ctx.matrix(n, ToyShape::kText);
    ctx.backend.embed(bytes_.view(), tokens, h);
    need(1);
    UnsetVector<float> features(static_cast<size_t>(n * ToyShape::kText));
    download_matrix(ctx, linear(ctx, h, blend_), features.data());
    if (progress) progress(1);
    return features;
  }

 private:
  nn::Table bytes_;
  nn::Linear blend_;
};

// --- the network ---

struct ToyConditioning : models::Conditioning {
  ToyConditioning(nn::Matrix text_, const models::Grid& grid)
      : Conditioning(text_.row_count(), grid), text(std::move(text_)) {}
  nn::Matrix text;  // [n, hidden]
};

struct ToyTimeline : models::Timeline {
  ToyTimeline(nn::Context& ctx, std::span<const float> times, nn::Matrix clocks_)
      : Timeline(times), clocks(std::move(clocks_)), clock(ctx.matrix(1, ToyShape::kHidden)) {}
  void arrive(nn::Context& ctx) override {
    ctx.backend.copy(clock.view().data, rows_of(clocks, step(), 1).data,
                     bytes_of(ctx.dtype, clock.view().shape));
  }
  nn::Matrix clocks;  // [steps, hidden]
  nn::Matrix clock;   // the step's row
};

class ToyDenoiser : public models::Network {
 public:
  explicit ToyDenoiser(weights::WeightSource source = {}, int64_t blocks = ToyShape::kBlocks)
      : Network(std::move(source)), blocks_(static_cast<size_t>(blocks)) {}

  std::string_view name() const override { return kToyDenoiser; }
  int64_t unit_count() const override { return std::ssize(blocks_) + 2; }
  void visit(int64_t unit, nn::WeightVisitor& visit) override {
    constexpr int64_t d = ToyShape::kHidden, f = ToyShape::kFfn;
    if (unit == 0) {
      visit.linear(entry_.lift, toy_linear("lift", d, ToyShape::kLatent, /*bias=*/true));
      visit.linear(entry_.words, toy_linear("words", d, ToyShape::kText, /*bias=*/false));
      visit.linear(entry_.clock, toy_linear("clock", d, ToyShape::kWaves, /*bias=*/true));
      return;
    }
    if (unit == unit_count() - 1) {
      return visit.linear(drop_, toy_linear("drop", ToyShape::kLatent, d, /*bias=*/true));
    }
    Block& block = blocks_[static_cast<size_t>(unit - 1)];
    const std::string at = "stack." + std::to_string(unit - 1) + ".";
    visit.vector(block.gain, at + "gain", d);
    visit.linear(block.look, {.layer = "look",
                              .k = d,
                              .layouts = {{{at + "look", 3 * d}},
                                          {{at + "query", d}, {at + "key", d}, {at + "value", d}}},
                              .large = true});
    visit.linear(block.tell, toy_linear(at + "tell", d, d, /*bias=*/true, /*large=*/true));
    visit.linear(block.gate_up, {.layer = "gate+up",
                                 .k = d,
                                 .layouts = {{{at + "gate", f}, {at + "up", f}}},
                                 .order = RowOrder::gate_up,
                                 .large = true});
    visit.linear(block.down, toy_linear(at + "down", d, f, /*bias=*/false, /*large=*/true));
  }
  void release(int64_t unit) override {
    if (unit == 0) {
      entry_ = {};
    } else if (unit == unit_count() - 1) {
      drop_ = {};
    } else {
      blocks_[static_cast<size_t>(unit - 1)] = {};
    }
  }
  bool is_ignored(std::string_view) const override { return false; }

  int64_t latent_channels() const override { return ToyShape::kLatent; }
  bool sees_text() const override { return true; }
  int64_t text_features() const override { return ToyShape::kText; }

  std::unique_ptr<models::Conditioning> prepare(nn::Context& ctx, std::span<const float> features,
                                                const models::Grid& grid) const override {
    need(0);
    const int64_t n = std::ssize(features) / ToyShape::kText;
    const nn::Matrix uploaded = upload_matrix(ctx, features.data(), n, ToyShape::kText);
    return std::make_unique<ToyConditioning>(linear(ctx, uploaded, entry_.words), grid);
  }

  std::unique_ptr<models::Timeline> make_timeline(nn::Context& ctx,
                                                  std::span<const float> times) const override {
    need(0);
    return std::make_unique<ToyTimeline>(ctx, times, linear(ctx, waves(ctx, times), entry_.clock));
  }

  void velocity(nn::Context& ctx, const models::Conditioning& conditioning,
                models::Timeline& timeline, const ConstTensorView& z,
                const TensorView& out) const override {
    const Evaluation one{&conditioning, out};
    velocities(ctx, {&one, 1}, timeline, z);
  }

  // For tests: texts of this length make velocities() throw, or return no numbers,
  static inline int64_t refused = -1, poisoned = -1;
  // whether it may, and the most that it was asked for at once.
  static inline bool may_batch = true;
  static inline std::atomic<size_t> largest_batch = 0;
  bool can_batch() const override { return may_batch; }
  // The tokens of all evaluations below each other; each looks at its own alone.
  void velocities(nn::Context& ctx, std::span<const Evaluation> evaluations,
                  models::Timeline& timeline, const ConstTensorView& z) const override {
    largest_batch = std::max(largest_batch.load(), evaluations.size());
    need(0);
    std::vector<Rows> rows;
    int64_t all = 0;
    for (const Evaluation& each : evaluations) {
      const int64_t text = each.conditioning->text_tokens();
      check(text != refused, "toy: does not like {} tokens", refused);
      const int64_t count = text + each.conditioning->grid().tokens();
      rows.push_back({all, text, count});
      all += count;
    }
    const nn::Matrix h = ctx.matrix(all, ToyShape::kHidden);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& prompt = dynamic_cast<const ToyConditioning&>(*evaluations[i].conditioning);
      if (rows[i].text > 0) {
        ctx.backend.copy(rows_of(h, rows[i].first, rows[i].text).data, prompt.text.view().data,
                         bytes_of(ctx.dtype, prompt.text.view().shape));
      }
      linear_into(ctx, operand(ctx, z, entry_.lift), entry_.lift, image_of(h, rows[i]));
    }
    const nn::Matrix& clock = dynamic_cast<ToyTimeline&>(timeline).clock;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      ctx.begin_layer();
      need(static_cast<int64_t>(i) + 1);
      run(ctx, blocks_[i], h, rows, vector_of(clock, 0, ToyShape::kHidden));
    }
    need(unit_count() - 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      linear_into(ctx, normed(ctx, image_of(h, rows[i]), {.eps = kToyEps}, drop_), drop_,
                  evaluations[i].out);
      if (rows[i].text == poisoned) poison(ctx, evaluations[i].out);
    }
  }

  std::string config_text() const override {
    return nlohmann::json{{"_class_name", kToyDenoiserClass}}.dump();
  }
  // What a norm makes can be made smaller there. Nothing else has a weight before it.
  std::vector<quant::SmoothGroup> smooth_groups() const override {
    std::vector<quant::SmoothGroup> groups;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const std::string at = "stack." + std::to_string(i) + ".";
      groups.push_back({.inputs = at + "look", .modules = {at + "look"}, .vector = at + "gain"});
    }
    return groups;
  }

 private:
  struct Entry {
    nn::Linear lift, words, clock;
  };
  struct Block {
    nn::Vector gain;
    nn::Linear look, tell, gate_up, down;
  };

  // Of one evaluation: its text, then its image.
  struct Rows {
    int64_t first = 0, text = 0, count = 0;
  };
  static TensorView image_of(const nn::Matrix& h, const Rows& rows) {
    return rows_of(h, rows.first + rows.text, rows.count - rows.text);
  }

  static void poison(nn::Context& ctx, const TensorView& out) {
    const std::vector<std::byte> ones(bytes_of(out.dtype, out.shape), std::byte{0xff});
    ctx.backend.copy_to_device(out.data, ones.data(), ones.size());
  }

  static nn::Matrix waves(nn::Context& ctx, std::span<const float> times) {
    const std::vector<float> frequencies = {1, 2, 4, 8};
    const Buffer memory = ctx.backend.upload(std::as_bytes(std::span(frequencies)));
    nn::Matrix made = ctx.matrix(std::ssize(times), ToyShape::kWaves);
    ctx.backend.sinusoids(times, memory.view(DType::f32, {ToyShape::kWaves / 2}), made);
    return made;
  }

  static void run(nn::Context& ctx, const Block& block, const nn::Matrix& h,
                  const std::vector<Rows>& rows, const ConstTensorView& clock) {
    constexpr int64_t d = ToyShape::kHidden;
    const nn::Matrix qkv = linear(
        ctx,
        normed(ctx, h, {.eps = kToyEps, .weight = block.gain.view(), .scale = clock}, block.look),
        block.look);
    const nn::Matrix mixed = ctx.matrix(h.row_count(), d);
    for (const Rows& one : rows) {
      const auto third = [&](int64_t i) {
        return nn::rows_of(columns_of(qkv, i * d, d), one.first, one.count);
      };
      ctx.backend.attention({third(0), third(1), third(2), rows_of(mixed, one.first, one.count),
                             /*heads=*/1, /*kv_heads=*/1});
    }
    ctx.backend.add(h, linear(ctx, mixed, block.tell));
    const nn::Matrix inner =
        swiglu(ctx, normed(ctx, h, {.eps = kToyEps, .scale = clock}, block.gate_up), block.gate_up);
    ctx.backend.add(h, linear(ctx, inner, block.down));
  }

  Entry entry_;
  std::vector<Block> blocks_;
  nn::Linear drop_;
};

// --- pixels ---

class ToyDecoder : public models::Decoder {
 public:
  explicit ToyDecoder(weights::WeightSource source = {}) : Decoder(std::move(source)) {}

  std::string_view name() const override { return kToyDecoder; }
  int64_t unit_count() const override { return 1; }
  void visit(int64_t, nn::WeightVisitor& visitor) override {
    visitor.linear(pixels_, toy_linear("pixels", 3 * ToyShape::kTokenSide * ToyShape::kTokenSide,
                                       ToyShape::kLatent, /*bias=*/true));
  }
  void release(int64_t) override { pixels_ = {}; }
  bool is_ignored(std::string_view) const override { return false; }
  int64_t token_side() const override { return ToyShape::kTokenSide; }
  int64_t latent_channels() const override { return ToyShape::kLatent; }

  uint64_t image_bytes(const models::Grid& grid, DType dtype) const override {
    constexpr int64_t kSide = ToyShape::kTokenSide;
    return bytes_of(dtype, {grid.tokens(), ToyShape::kLatent + 3 * kSide * kSide});
  }

  // For tests: bounds that find no memory, and how often it was tried.
  enum class Refused { none, whole, all };
  static inline Refused refused = Refused::none;
  static inline int tries = 0;
  UnsetVector<float> decode(nn::Context& ctx, std::span<const float> latent,
                            const models::Grid& grid,
                            const std::function<void(double)>& progress) const override {
    ++tries;
    if (refused == Refused::all || (refused == Refused::whole && ctx.image_bytes == 0)) {
      throw OutOfMemory("toy: no memory for images");
    }
    need(0);
    const int64_t side = ToyShape::kTokenSide, width = grid.width * side;
    const nn::Matrix uploaded = upload_matrix(ctx, latent.data(), grid.tokens(), ToyShape::kLatent);
    const nn::Matrix made = linear(ctx, uploaded, pixels_);
    std::vector<float> tokens(static_cast<size_t>(made.view().shape.elements()));
    download_matrix(ctx, made, tokens.data());
    if (progress) progress(0.5);
    UnsetVector<float> image(tokens.size());
    for (int64_t i = 0; i < std::ssize(image); ++i) {
      check(std::isfinite(tokens[static_cast<size_t>(i)]), "toy: a pixel is not finite");
      const int64_t token = i / (side * side * 3), inside = i / 3 % (side * side);
      const int64_t y = token / grid.width * side + inside / side;
      const int64_t x = token % grid.width * side + inside % side;
      image[static_cast<size_t>((y * width + x) * 3 + i % 3)] = tokens[static_cast<size_t>(i)];
    }
    return image;
  }

 private:
  nn::Linear pixels_;
};

}  // namespace octet::test
