#include "measure/predict/step.h"

#include <algorithm>

#include "base/error.h"

namespace octet::predict {
namespace {

constexpr ModelLinear kModelLinears[] = {
    {"qkv", 3 * kHidden, kHidden},
    {"o", kHidden, kHidden},
    {"w13", 2 * kFfn, kHidden},
    {"w2", kHidden, kFfn},
};

constexpr int kTokenSide = 16;  // pixels

Path linear_path(std::string_view path) {
  if (path == "int8" || path == "int8_attention") return Path::int8;
  if (path == "bf16") return Path::bf16;
  if (path == "fp8") return Path::fp8;
  if (path == "nf4") return Path::nf4;
  check(path == "fake",
        "predict: path {} is unknown; known are int8, int8_attention, bf16, fp8, "
        "nf4 and fake",
        path);
  return Path::fake;
}

// Bytes of the passes of a block, per token. In INT8, quantization rides on the norm where there is
// one before the linear (two inputs, those of o and w2, are quantized by themselves) and SwiGLU on
// the product. All other paths have the passes of bf16, and whole linears: so `octet map` computes
// their steps.
double norm_bytes(bool int8) { return kHidden * (2.0 + 2 + 2 + (int8 ? 1 : 2)); }
double rotary_bytes() { return 2.0 * kHidden * (2 + 2); }
double swiglu_bytes() { return 2.0 * 3 * kFfn; }

// One forward pass of one transformer.
StepTime forward_time(const Card& card, const Coefficients& coefficients, std::string_view path,
                      int64_t tokens) {
  const Path kind = linear_path(path);
  const bool int8 = kind == Path::int8;
  const double rows = double(tokens);
  const auto pass = [&](double bytes) { return row_pass_us(card, coefficients, bytes * rows); };
  StepTime time;
  const double rows_us =
      2 * pass(norm_bytes(int8)) + pass(rotary_bytes()) + (int8 ? 0 : pass(swiglu_bytes()));
  double linears_us = int8 ? pass(3.0 * kHidden) + pass(3.0 * kFfn) : 0;
  for (const ModelLinear& linear : kModelLinears) {
    const auto time_of = int8 ? product_time : linear_time;
    linears_us += time_of(card, coefficients, kind, Load::steady, tokens, linear.n, linear.k).us;
  }
  const Attention attention = path == "int8_attention" ? Attention::int8_scores : Attention::bf16;
  time.linears_ms = kLayers * linears_us * 1e-3;
  time.attention_ms =
      kLayers * 1e-3 *
      attention_us(card, coefficients, attention, Load::steady, tokens, kHeads, kHeadSize);
  time.rows_ms = kLayers * rows_us * 1e-3;
  return time;
}

}  // namespace

std::span<const ModelLinear> model_linears() { return kModelLinears; }

int64_t image_tokens(int size) {
  const int64_t side = size / kTokenSide;
  return side * side;
}

StepTime step_time(const Card& card, const Coefficients& coefficients, std::string_view path,
                   int size, int text_tokens) {
  if (linear_path(path) == Path::fp8 && card.fp8 == 0) return {};
  const int64_t tokens = image_tokens(size);
  const StepTime a = forward_time(card, coefficients, path, tokens + text_tokens);
  const StepTime b = forward_time(card, coefficients, path, tokens);
  return {a.linears_ms + b.linears_ms, a.attention_ms + b.attention_ms, a.rows_ms + b.rows_ms};
}

// The arithmetic of docs/memory_and_speed.md.
double memory_bytes(std::string_view path, int size, bool both) {
  constexpr double kOthers = 0.75e9;  // modulation, embeddings, final layer: bf16, and scales
  constexpr double kTextProjection = 0.49e9;
  constexpr double kFixed = 0.57e9, kPerToken = 130e3;  // of a picture: 1.1 GB at 1024, 2.7 at 2048
  double weights = 0, largest = 0;
  for (const ModelLinear& linear : kModelLinears) {
    const double size_of = double(linear.n) * double(linear.k);
    weights += kLayers * size_of;
    largest = std::max(largest, size_of);
  }
  const Path kind = linear_path(path);
  const double bytes_per_weight = kind == Path::bf16 ? 2 : kind == Path::nf4 ? 0.5625 : 1;
  double total = (both ? 2 : 1) * (weights * bytes_per_weight + kOthers) + kTextProjection +
                 kFixed + kPerToken * double(image_tokens(size));
  if (kind == Path::nf4 || kind == Path::fake) total += 2 * largest;  // one weight in bf16
  return total;
}

}  // namespace octet::predict
