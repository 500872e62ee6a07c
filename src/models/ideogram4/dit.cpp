// The forward pass, in the order of its equations. D: hidden, L: tokens, n of them text.
#include "models/ideogram4/dit.h"

#include <cmath>

#include "base/error.h"

namespace octet::ideogram4 {
namespace {

using nn::Context;
using nn::Matrix;

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

// [1, D]. The reference rounds the time to the type of its activations, which moves the fastest
// sines by whole turns: the network knows nothing else.
Matrix time_embedding(Context& ctx, const Dit& dit, const Buffer& frequencies, float time) {
  const float rounded = ctx.dtype == DType::bf16 ? to_f32(from_f32<bf16_t>(time)) : time;
  const int64_t d = dit.config.hidden();
  const Matrix waves = ctx.matrix(1, d);
  const float angle = kTimeScale * rounded;
  ctx.backend.sinusoids({&angle, 1}, frequencies.view(DType::f32, {d / 2}), waves);
  return linear(ctx, silu(ctx, linear(ctx, waves, dit.entry.time_in)), dit.entry.time_out);
}

// x [L, D] -> [L, D]
Matrix attention(Context& ctx, const DitConfig& config, const DitBlock& block, const nn::Operand& x,
                 const nn::Rotary& rotary) {
  const int64_t d = config.hidden();
  const Matrix qkv = rotated_linear(ctx, x, block.qkv,
                                    {config.heads, config.heads, kHeadNormEps, block.norm_q.view(),
                                     block.norm_k.view(), rotary.cos, rotary.sin});
  const TensorView q = columns_of(qkv, 0, d), k = columns_of(qkv, d, d),
                   v = columns_of(qkv, 2 * d, d);
  const Matrix mixed = ctx.matrix(q.shape[0], d);
  ctx.backend.attention({q, k, v, mixed, config.heads, config.heads});
  return linear(ctx, mixed, block.attention_out);
}

// x [L, D] -> [L, D]
Matrix feed_forward(Context& ctx, const DitBlock& block, const nn::Operand& x) {
  return linear(ctx, swiglu(ctx, x, block.gate_up), block.down);
}

// h [L, D] in place; c [1, A].
void run_block(Context& ctx, const DitConfig& config, const DitBlock& block, const Matrix& h,
               const Matrix& c, const nn::Rotary& rotary) {
  const int64_t d = config.hidden();
  const float eps = config.norm_eps;
  const Matrix modulation = linear(ctx, c, block.modulation);
  const auto chunk = [&](int64_t i) { return vector_of(modulation, i * d, d); };
  const ConstTensorView scale1 = chunk(0), gate1 = chunk(1), scale2 = chunk(2), gate2 = chunk(3);

  const Matrix a =
      attention(ctx, config, block,
                normed(ctx, h, rms(block.attention_norm1, eps, scale1), block.qkv), rotary);
  ctx.backend.add_gated(h, a, rms(block.attention_norm2, eps), gate1);

  const Matrix m =
      feed_forward(ctx, block, normed(ctx, h, rms(block.ffn_norm1, eps, scale2), block.gate_up));
  ctx.backend.add_gated(h, m, rms(block.ffn_norm2, eps), gate2);
}

}  // namespace

DitPrompt prepare(Context& ctx, const Dit& dit, std::span<const float> features,
                  const models::Grid& grid) {
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
    const DitEntry& entry = dit.entry;
    const Matrix uploaded = upload_matrix(ctx, features.data(), n, config.text_features);
    linear_into(ctx, normed(ctx, uploaded, rms(entry.text_norm, kTextNormEps), entry.text),
                entry.text, text);
    add_role(ctx, dit, kNotImage, text);
  }
  return {std::move(text), std::move(rotary), time_frequencies(ctx, config), grid};
}

Matrix forward(Context& ctx, const Dit& dit, const DitPrompt& prompt, const ConstTensorView& z,
               float time, const NeedUnit& need) {
  const DitConfig& config = dit.config;
  const int64_t n = prompt.text_tokens(), image_tokens = prompt.grid().tokens();
  check(z.shape == Shape({image_tokens, config.latent_channels}),
        "the latent is {}, expected [{}, {}]", z.shape.to_string(), image_tokens,
        config.latent_channels);
  const auto begin_unit = [&](int64_t unit) {
    ctx.begin_layer();
    if (need) need(unit);
  };

  // One sequence: the text's tokens, which never change, then the image's.
  begin_unit(0);
  const Matrix h = ctx.matrix(n + image_tokens, config.hidden());
  const TensorView image = rows_of(h, n, image_tokens);
  ctx.backend.copy(h.view().data, prompt.text.view().data,
                   bytes_of(ctx.dtype, prompt.text.view().shape));
  linear_into(ctx, operand(ctx, z, dit.entry.input), dit.entry.input, image);
  add_role(ctx, dit, kImage, image);

  const Matrix time_features = time_embedding(ctx, dit, prompt.frequencies, time);
  const Matrix c = silu(ctx, linear(ctx, time_features, dit.entry.conditioning));
  for (int64_t i = 0; i < config.layers; ++i) {
    begin_unit(1 + i);
    run_block(ctx, config, dit.blocks[static_cast<size_t>(i)], h, c, prompt.rotary);
  }

  // The blocks take c as it is, the final layer applies SiLU once more.
  begin_unit(1 + config.layers);
  const Matrix scale = linear(ctx, silu(ctx, c), dit.exit.modulation);
  const RowNorm final_norm = {.kind = RowNorm::Kind::layer,
                              .eps = kFinalNormEps,
                              .scale = vector_of(scale, 0, config.hidden())};
  return linear(ctx, normed(ctx, image, final_norm, dit.exit.linear), dit.exit.linear);
}

}  // namespace octet::ideogram4
