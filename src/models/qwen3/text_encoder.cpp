// The forward pass, in the order of its equations. H: hidden, n: tokens.
#include "models/qwen3/text_encoder.h"

#include <charconv>

#include "base/error.h"
#include "nn/rope.h"
#include "weights/loader.h"

namespace octet::qwen3 {
namespace {

using nn::Context;
using nn::Matrix;

constexpr std::string_view kEmbedding = "embed_tokens";

// "layers.36.mlp.up_proj.weight": of a layer behind those that run.
bool is_later_layer(std::string_view name, int64_t run_layers) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return false;
  int64_t index = 0;
  const char* end = name.data() + name.size();
  return std::from_chars(name.data() + kLayers.size(), end, index).ec == std::errc() &&
         index >= run_layers;
}

// h [n, H] in place.
void run_layer(Context& ctx, const TextConfig& config, const TextLayer& layer, const Matrix& h,
               const nn::Rotary& rotary) {
  const int64_t hd = config.head_dim, of_q = config.heads * hd, of_kv = config.kv_heads * hd;
  const auto rms = [&](const nn::Vector& weight) -> RowNorm {
    return {.eps = config.norm_eps, .weight = weight.view()};
  };

  const Matrix qkv = linear(ctx, normed(ctx, h, rms(layer.input_norm), layer.qkv), layer.qkv);
  const TensorView q = columns_of(qkv, 0, of_q), k = columns_of(qkv, of_q, of_kv),
                   v = columns_of(qkv, of_q + of_kv, of_kv);
  ctx.backend.rotate_heads(
      q, {config.heads, config.norm_eps, layer.norm_q.view(), rotary.cos, rotary.sin});
  ctx.backend.rotate_heads(
      k, {config.kv_heads, config.norm_eps, layer.norm_k.view(), rotary.cos, rotary.sin});
  const Matrix mixed = ctx.matrix(h.row_count(), of_q);
  ctx.backend.attention({q, k, v, mixed, config.heads, config.kv_heads, /*causal=*/true});
  ctx.backend.add(h, linear(ctx, mixed, layer.attention_out));

  const nn::Operand x = normed(ctx, h, rms(layer.attention_norm), layer.gate_up);
  ctx.backend.add(h, linear(ctx, swiglu(ctx, x, layer.gate_up), layer.down));
}

Matrix copy_of(Context& ctx, const Matrix& h) {
  Matrix made = ctx.matrix(h.row_count(), h.column_count());
  ctx.backend.copy(made.view().data, h.view().data, bytes_of(ctx.dtype, h.view().shape));
  return made;
}

// Matrices [n, H], as F32 [n, H, taps] in host memory.
UnsetVector<float> interleaved(Context& ctx, ThreadPool& pool, const std::vector<Matrix>& tapped) {
  const TensorView& first = tapped.front().view();
  const int64_t columns = first.shape[1];
  std::vector<Buffer> on_host;
  for (const Matrix& tap : tapped) {
    on_host.push_back(allocate_host(bytes_of(ctx.dtype, first.shape)));
    ctx.backend.copy_to_host(on_host.back().data(), tap.view().data, on_host.back().bytes());
  }
  UnsetVector<float> features(static_cast<size_t>(first.shape.elements()) * tapped.size());
  pool.run(first.shape[0], [&](int64_t row, int) {
    float* out = features.data() + row * columns * static_cast<int64_t>(tapped.size());
    for (int64_t at = row * columns; at < (row + 1) * columns; ++at) {
      for (const Buffer& tap : on_host) {
        *out++ = ctx.dtype == DType::bf16 ? to_f32(reinterpret_cast<bf16_t*>(tap.data())[at])
                                          : reinterpret_cast<float*>(tap.data())[at];
      }
    }
  });
  return features;
}

}  // namespace

void visit_embedding(nn::Table& embedding, const TextConfig& config, nn::WeightVisitor& visit) {
  visit.table(embedding, std::string(kEmbedding) + ".weight", config.vocabulary, config.hidden);
}

void visit_layer(TextLayer& layer, const TextConfig& config, int64_t i, nn::WeightVisitor& visit) {
  const std::string at = "layers." + std::to_string(i) + ".";
  const int64_t h = config.hidden, f = config.ffn;
  const int64_t of_q = config.heads * config.head_dim, of_kv = config.kv_heads * config.head_dim;
  visit.vector(layer.input_norm, at + "input_layernorm.weight", h);
  visit.vector(layer.attention_norm, at + "post_attention_layernorm.weight", h);
  visit.linear(layer.qkv, {.layer = "text.self_attn.qkv",
                           .k = h,
                           .layouts = {{{at + "self_attn.q_proj", of_q},
                                        {at + "self_attn.k_proj", of_kv},
                                        {at + "self_attn.v_proj", of_kv}}},
                           .large = true});
  visit.vector(layer.norm_q, at + "self_attn.q_norm.weight", config.head_dim);
  visit.vector(layer.norm_k, at + "self_attn.k_norm.weight", config.head_dim);
  visit.linear(layer.attention_out, {.layer = "text.self_attn.o_proj",
                                     .k = of_q,
                                     .layouts = {{{at + "self_attn.o_proj", h}}},
                                     .large = true});
  visit.linear(layer.gate_up, {.layer = "text.mlp.gate+up",
                               .k = h,
                               .layouts = {{{at + "mlp.gate_proj", f}, {at + "mlp.up_proj", f}}},
                               .order = RowOrder::gate_up,
                               .large = true});
  visit.linear(layer.down, {.layer = "text.mlp.down_proj",
                            .k = f,
                            .layouts = {{{at + "mlp.down_proj", h}}},
                            .large = true});
}

TextEncoder::TextEncoder(const std::string& path, std::span<const int64_t> taps)
    : TextEncoder(open_text_encoder(path), taps) {}

TextEncoder::TextEncoder(const TextConfig& config, std::span<const int64_t> taps)
    : config_(config), taps_(taps.begin(), taps.end()) {
  check(config_.layers >= run_layers(), "text encoder: {} layers, expected at least {}",
        config_.layers, run_layers());
  layers_.resize(static_cast<size_t>(run_layers()));
}

TextEncoder::TextEncoder(TextSource source, std::span<const int64_t> taps)
    : models::TextEncoder(std::move(source.weights)),
      config_(source.config),
      taps_(taps.begin(), taps.end()) {
  check(config_.layers >= run_layers(),
        "{}: num_hidden_layers is {}, expected at least {}: the features come from the layers 0 to "
        "{}",
        source.described_by, config_.layers, run_layers(), run_layers() - 1);
  layers_.resize(static_cast<size_t>(run_layers()));
  weights::CheckpointCheck present(this->source());
  visit_all(present);
  present.check_nothing_is_left([&](std::string_view name) { return is_ignored(name); });
}

void TextEncoder::visit(int64_t unit, nn::WeightVisitor& visitor) {
  if (unit == 0) {
    embedding_.in_files = reads_embedding();
    return visit_embedding(embedding_, config_, visitor);
  }
  visit_layer(layers_[static_cast<size_t>(unit - 1)], config_, unit - 1, visitor);
}

void TextEncoder::release(int64_t unit) {
  if (unit == 0) {
    embedding_ = {};
  } else {
    layers_[static_cast<size_t>(unit - 1)] = {};
  }
}

// Beside the text tower a file may hold the vision tower, and what comes after the last tap.
bool TextEncoder::is_ignored(std::string_view name) const {
  return name.starts_with("visual.") || name.starts_with("model.visual.") ||
         name.starts_with("lm_head.") || name.starts_with("norm.") || name == "scaled_fp8" ||
         is_later_layer(name, run_layers());
}

// The same bits either way: the host converts a row as a device does.
void TextEncoder::embed(Context& ctx, const std::vector<int32_t>& tokens,
                        const Matrix& into) const {
  if (!reads_embedding()) return ctx.backend.embed(embedding_.view(), tokens, into);
  if (!ctx.backend.keeps_values()) return;
  const auto table = source().weight(std::string(kEmbedding), config_.vocabulary, config_.hidden);
  const Buffer rows = allocate_host(bytes_of(ctx.dtype, into.view().shape));
  const int64_t row_bytes = config_.hidden * (bits_of(ctx.dtype) / 8);
  ctx.backend.pool().run(std::ssize(tokens), [&](int64_t i, int) {
    table->read(tokens[static_cast<size_t>(i)], ctx.dtype, rows.data() + i * row_bytes);
  });
  table->finish_reading();
  ctx.backend.copy_to_device(into.view().data, rows.data(), rows.bytes());
}

UnsetVector<float> TextEncoder::encode(Context& ctx, const std::vector<int32_t>& tokens,
                                       const std::function<void(int64_t)>& progress) const {
  const auto n = static_cast<int64_t>(tokens.size());
  check(n > 0, "text encoder: there are no tokens");
  for (const int32_t token : tokens) {
    check(token >= 0 && token < config_.vocabulary,
          "text encoder: token {} is outside of its vocabulary of {}; the tokenizer belongs to "
          "another model",
          token, config_.vocabulary);
  }
  const auto begin_unit = [&](int64_t unit) {
    ctx.begin_layer();
    need(unit);
  };
  begin_unit(0);
  const Matrix h = ctx.matrix(n, config_.hidden);
  embed(ctx, tokens, h);
  // Text has one position on all axes: ordinary rotary embedding.
  const auto frequencies = nn::rotary_frequencies(config_.rope_theta, config_.head_dim);
  std::vector<nn::Position> positions;
  for (int64_t i = 0; i < n; ++i) positions.push_back({static_cast<float>(i)});
  const nn::Rotary rotary =
      nn::make_rotary(ctx.backend, positions, frequencies, std::vector<int>(frequencies.size(), 0));

  // Taps stay on the device to the end: bringing one to the host would wait for its layer, while
  // the next could be loaded.
  std::vector<Matrix> tapped;
  for (int64_t i = 0; i < run_layers(); ++i) {
    begin_unit(1 + i);
    run_layer(ctx, config_, layers_[static_cast<size_t>(i)], h, rotary);
    if (i == taps_[tapped.size()]) tapped.push_back(copy_of(ctx, h));
    if (progress) progress(i + 1);
  }
  return interleaved(ctx, ctx.backend.pool(), tapped);
}

}  // namespace octet::qwen3
