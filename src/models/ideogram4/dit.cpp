// The forward pass, in the order of its equations. D: hidden, L: tokens, n of them text.
#include "models/ideogram4/dit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "nn/attention.h"

namespace octet::ideogram4 {
namespace {

using nn::columns_of;
using nn::Context;
using nn::Matrix;
using nn::rows_of;
using nn::vector_of;

constexpr float kHeadNormEps = 1e-5f;
constexpr float kTextNormEps = 1e-6f;
constexpr float kFinalNormEps = 1e-6f;
constexpr float kTimeScale = 1e4f;          // times from 0 to 1 become angles
constexpr float kImagePosition = 65536.0f;  // of the first image token, on every axis

enum Role : int32_t { kNotImage = 0, kImage = 1 };

RowNorm rms(const nn::Vector& weight, float eps, const ConstTensorView& scale = {}) {
  return {.eps = eps, .weight = weight.view(), .scale = scale};
}

// Frequencies i = 1, 4, 7 ... turn with the row, 2, 5, 8 ... with the column, up to three times
// their section; all others turn with the time axis.
std::vector<int> rotary_axes(const DitConfig& config) {
  std::vector<int> axes(static_cast<size_t>(config.head_dim / 2), 0);
  for (const int axis : {1, 2}) {
    const auto end = static_cast<size_t>(3 * config.mrope_section[static_cast<size_t>(axis)]);
    for (auto i = static_cast<size_t>(axis); i < end && i < axes.size(); i += 3) axes[i] = axis;
  }
  return axes;
}

// x + the embedding of its role, for every row.
void add_role(Context& ctx, const Dit& dit, Role role, const TensorView& x) {
  const nn::Table& roles = dit.entry.roles;
  const int64_t at = role * roles.columns * (bits_of(roles.dtype) / 8);
  ctx.backend.add_row(x, ConstTensorView(roles.memory.data() + at, roles.dtype, {roles.columns}));
}

Matrix silu(Context& ctx, const Matrix& x) {
  Matrix out = ctx.matrix(x.row_count(), x.column_count());
  ctx.backend.activate(x, Activation::silu, out);
  return out;
}

// Of the time's sines and cosines, F32 [D / 2].
Buffer time_frequencies(Context& ctx, const DitConfig& config) {
  const int64_t half = config.hidden() / 2;
  std::vector<float> frequencies(static_cast<size_t>(half));
  const auto step = static_cast<float>(std::log(1e4) / static_cast<double>(half - 1));
  for (int64_t i = 0; i < half; ++i) {
    frequencies[static_cast<size_t>(i)] =
        static_cast<float>(std::exp(static_cast<double>(static_cast<float>(i) * -step)));
  }
  Buffer memory = ctx.backend.allocate(frequencies.size() * sizeof(float));
  ctx.backend.copy_to_device(memory.data(), reinterpret_cast<const std::byte*>(frequencies.data()),
                             memory.bytes());
  return memory;
}

// [times, D]. The reference rounds the time to the type of its activations, which moves the fastest
// sines by whole turns: the network knows nothing else.
Matrix time_embedding(Context& ctx, const Dit& dit, std::span<const float> times) {
  std::vector<float> angles;
  for (const float time : times) {
    const float rounded = ctx.dtype == DType::bf16 ? to_f32(from_f32<bf16_t>(time)) : time;
    angles.push_back(kTimeScale * rounded);
  }
  const int64_t d = dit.config.hidden();
  const Buffer frequencies = time_frequencies(ctx, dit.config);
  const Matrix waves = ctx.matrix(std::ssize(times), d);
  ctx.backend.sinusoids(angles, frequencies.view(DType::f32, {d / 2}), waves);
  return linear(ctx, silu(ctx, linear(ctx, waves, dit.times.time_in)), dit.times.time_out);
}

nn::AttentionHeads heads_of(const DitConfig& config, const DitBlock& block,
                            const nn::Rotary& rotary) {
  return {config.heads,        config.heads, kHeadNormEps, block.norm_q.view(),
          block.norm_k.view(), rotary.cos,   rotary.sin};
}

// x [L, D] -> [L - first, D]: of the rows from the first on, which look at all.
Matrix attention(Context& ctx, const DitConfig& config, const DitBlock& block, nn::Operand x,
                 const nn::Rotary& rotary, int64_t first) {
  const Matrix mixed =
      self_attention(ctx, std::move(x), block.qkv, heads_of(config, block, rotary), first);
  return linear(ctx, mixed, block.attention_out);
}

// x [L, D] -> [L, D]. The widest rows of a step: each is released as soon as it was read.
Matrix feed_forward(Context& ctx, const DitBlock& block, nn::Operand x) {
  std::optional<Matrix> wide = swiglu(ctx, x, block.gate_up);
  x = {};
  const nn::Operand codes = operand(ctx, *wide, block.down);
  if (codes.plain() == nullptr) wide.reset();
  return linear(ctx, codes, block.down);
}

// A term of h that is not added yet: whoever reads h next does it in the same pass.
struct Residual {
  Matrix x;
  RowNorm norm;
  ConstTensorView gate;

  nn::GatedTerm term() const { return {x, norm, gate}; }
};

// norm(h + residual), and h with it.
nn::Operand normed_sum(Context& ctx, const TensorView& h, std::optional<Residual>& residual,
                       const RowNorm& norm, const nn::Linear& w) {
  if (!residual) return normed(ctx, h, norm, w);
  nn::Operand made = add_gated_normed(ctx, h, residual->term(), norm, w);
  residual.reset();  // its memory is the next ops'
  return made;
}

// What a block is modulated by.
struct Modulation {
  ConstTensorView scale1, gate1, scale2, gate2;
};

// run_block() for little memory: what a row does not need of others is done for some rows at a
// time, and added to h at once, so that no residual is left.
void run_block_by_rows(Context& ctx, const DitConfig& config, const DitBlock& block,
                       const Matrix& h, const Modulation& by, const nn::Rotary& rotary,
                       int64_t first, const ConstTensorView& ffn_norm2) {
  const float eps = config.norm_eps;
  const TensorView changed = rows_of(h, first, h.row_count() - first);
  const auto add = [&](int64_t row, const Matrix& x, const RowNorm& norm,
                       const ConstTensorView& gate) {
    ctx.backend.add_gated(rows_of(changed, row, x.row_count()), x, norm, gate);
  };
  const auto to_qkv = [&](int64_t row, int64_t count) {
    return normed(ctx, rows_of(h, row, count), rms(block.attention_norm1, eps, by.scale1),
                  block.qkv);
  };
  self_attention_by_rows(ctx, h.row_count(), to_qkv, block.qkv, heads_of(config, block, rotary),
                         first, [&](int64_t row, Matrix mixed) {
                           add(row, linear(ctx, mixed, block.attention_out),
                               rms(block.attention_norm2, eps), by.gate1);
                         });
  for_some_rows(ctx, h.row_count() - first, [&](int64_t row, int64_t count) {
    add(row,
        feed_forward(ctx, block,
                     normed(ctx, rows_of(changed, row, count), rms(block.ffn_norm1, eps, by.scale2),
                            block.gate_up)),
        {.eps = eps, .weight = ffn_norm2}, by.gate2);
  });
}

// h [L, D] in place, its rows from the first on; modulation [1, 4 D]. `residual`: of the block
// before, then of this one.
void run_block(Context& ctx, const DitConfig& config, const DitBlock& block, const Matrix& h,
               const TensorView& modulation, const nn::Rotary& rotary, int64_t first,
               const ConstTensorView& ffn_norm2, std::optional<Residual>& residual) {
  const int64_t d = config.hidden();
  const TensorView changed = rows_of(h, first, h.row_count() - first);
  const float eps = config.norm_eps;
  const auto chunk = [&](int64_t i) { return vector_of(modulation, i * d, d); };
  const Modulation by{chunk(0), chunk(1), chunk(2), chunk(3)};
  if (ctx.rows_at_once > 0) {
    return run_block_by_rows(ctx, config, block, h, by, rotary, first, ffn_norm2);
  }

  Matrix a =
      attention(ctx, config, block,
                normed_sum(ctx, h, residual, rms(block.attention_norm1, eps, by.scale1), block.qkv),
                rotary, first);
  residual = {std::move(a), rms(block.attention_norm2, eps), by.gate1};

  Matrix m = feed_forward(
      ctx, block,
      normed_sum(ctx, changed, residual, rms(block.ffn_norm1, eps, by.scale2), block.gate_up));
  residual = {std::move(m), {.eps = eps, .weight = ffn_norm2}, by.gate2};
}

}  // namespace

DitPrompt prepare(Context& ctx, const Dit& dit, std::span<const float> features,
                  const models::Grid& grid, const NeedUnit& need) {
  const DitConfig& config = dit.config;
  const auto n = static_cast<int64_t>(features.size()) / config.text_features;
  check(static_cast<int64_t>(features.size()) == n * config.text_features,
        "text features: {} numbers, expected rows of {}", features.size(), config.text_features);
  std::vector<nn::Position> positions;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<float>(i);
    positions.push_back({at, at, at});
  }
  for (int64_t y = 0; y < grid.height; ++y) {
    for (int64_t x = 0; x < grid.width; ++x) {
      positions.push_back({kImagePosition, kImagePosition + static_cast<float>(y),
                           kImagePosition + static_cast<float>(x)});
    }
  }
  nn::Rotary rotary = nn::make_rotary(ctx.backend, positions,
                                      nn::rotary_frequencies(config.rope_theta, config.head_dim),
                                      rotary_axes(config));
  Matrix text = ctx.matrix(n, config.hidden());
  if (n > 0) {
    const Matrix uploaded = upload_matrix(ctx, features.data(), n, config.text_features);
    if (need) need(DitUnits(config).text());
    linear_into(ctx, normed(ctx, uploaded, rms(dit.text.norm, kTextNormEps), dit.text.linear),
                dit.text.linear, text);
    if (need) need(DitUnits(config).entry());
    add_role(ctx, dit, kNotImage, text);
  }
  return {std::move(text), std::move(rotary), grid};
}

DitTimeline::DitTimeline(Context& ctx, const Dit& dit, std::span<const float> times,
                         const NeedUnit& need)
    : Timeline(times),
      hidden_(dit.config.hidden()),
      all_(ctx.matrix(steps(), (4 * dit.config.layers + 1) * hidden_)),
      current_(ctx.matrix(1, all_.column_count())),
      norms_(ctx.backend, DType::f32, dit.config.layers, hidden_) {
  const DitUnits units(dit.config);
  const auto begin_unit = [&](int64_t unit) {
    ctx.begin_layer();
    if (need) need(unit);
  };
  begin_unit(units.times());
  const Matrix c = silu(
      ctx, linear(ctx, time_embedding(ctx, dit, times), dit.times.conditioning));  // [steps, A]
  const int64_t columns = 4 * hidden_;
  for (int64_t i = 0; i < dit.config.layers; ++i) {
    begin_unit(units.modulation(i));
    const DitModulation& modulation = dit.modulations[static_cast<size_t>(i)];
    const ConstTensorView norm = modulation.ffn_norm2.view();
    ctx.backend.copy(rows_of(norms_, i, 1).data, norm.data, bytes_of(norm.dtype, norm.shape));
    linear_into(ctx, operand(ctx, c, modulation.linear), modulation.linear,
                columns_of(all_, i * columns, columns));
  }
  // The blocks take c as it is, the final layer applies SiLU once more.
  begin_unit(units.exit_modulation());
  const Matrix c_of_exit = silu(ctx, c);
  linear_into(ctx, operand(ctx, c_of_exit, dit.exit_modulation), dit.exit_modulation,
              columns_of(all_, dit.config.layers * columns, hidden_));
}

void DitTimeline::arrive(Context& ctx) {
  const TensorView row = rows_of(all_, step(), 1);
  ctx.backend.copy(current_.view().data, row.data, bytes_of(row.dtype, row.shape));
}

TensorView DitTimeline::of_block(int64_t block) const {
  return columns_of(current_, block * 4 * hidden_, 4 * hidden_);
}

ConstTensorView DitTimeline::of_exit() const {
  return vector_of(current_, all_.column_count() - hidden_, hidden_);
}

ConstTensorView DitTimeline::ffn_norm2(int64_t block) const {
  return vector_of(rows_of(norms_, block, 1), 0, hidden_);
}

void forward(Context& ctx, const Dit& dit, const DitPrompt& prompt, DitTimeline& timeline,
             const ConstTensorView& z, const TensorView& out, const NeedUnit& need) {
  const DitConfig& config = dit.config;
  const DitUnits units(config);
  const int64_t n = prompt.text_tokens(), image_tokens = prompt.grid().tokens();
  check(z.shape == Shape({image_tokens, config.latent_channels}),
        "the latent is {}, expected [{}, {}]", z.shape.to_string(), image_tokens,
        config.latent_channels);
  const auto begin_unit = [&](int64_t unit) {
    ctx.begin_layer();
    if (need) need(unit);
  };

  // One sequence: the text's tokens, which never change, then the image's.
  begin_unit(units.entry());
  const Matrix h = ctx.matrix(n + image_tokens, config.hidden());
  const TensorView image = rows_of(h, n, image_tokens);
  ctx.backend.copy(h.view().data, prompt.text.view().data,
                   bytes_of(ctx.dtype, prompt.text.view().shape));
  linear_into(ctx, operand(ctx, z, dit.entry.input), dit.entry.input, image);
  add_role(ctx, dit, kImage, image);

  // Behind the last block nobody reads the text. Who watches inputs sees all rows of all blocks:
  // they are as good as any for statistics, and files that were calibrated so can be made again.
  const int64_t left_out = ctx.tap == nullptr ? n : 0;
  std::optional<Residual> residual;
  for (int64_t i = 0; i < config.layers; ++i) {
    begin_unit(units.block(i));
    run_block(ctx, config, dit.blocks[static_cast<size_t>(i)], h, timeline.of_block(i),
              prompt.rotary, i + 1 < config.layers ? 0 : left_out, timeline.ffn_norm2(i), residual);
  }
  if (residual) {
    const int64_t rows = residual->x.row_count();
    ctx.backend.add_gated(rows_of(h, h.row_count() - rows, rows), residual->x, residual->norm,
                          residual->gate);
    residual.reset();
  }

  begin_unit(units.exit());
  const RowNorm final_norm = {
      .kind = RowNorm::Kind::layer, .eps = kFinalNormEps, .scale = timeline.of_exit()};
  linear_into(ctx, normed(ctx, image, final_norm, dit.exit), dit.exit, out);
}

}  // namespace octet::ideogram4
