// A denoising step of Ideogram 4 on a card: the conditional and the unconditional transformer.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "measure/predict/model.h"

namespace octet::predict {

struct ModelLinear {
  const char* layer;
  int64_t n, k;
};

inline constexpr int kLayers = 34;
inline constexpr int64_t kHidden = 4608, kFfn = 12288, kHeads = 18, kHeadSize = 256;

// The large linears of a block.
std::span<const ModelLinear> model_linears();

int64_t image_tokens(int size);

// Linears have the quantizations that are no part of a norm, and the dequantizations.
struct StepTime {
  double linears_ms = 0, attention_ms = 0, rows_ms = 0;
  double ms() const { return linears_ms + attention_ms + rows_ms; }
};

// `path`: int8, int8_attention (INT8 scores as well), bf16, fp8, nf4, fake. All zero where the card
// cannot. Without pause.
StepTime step_time(const Card& card, const Coefficients& coefficients, std::string_view path,
                   int size, int text_tokens);

// Weights of both transformers, or of the conditional one alone, and what a picture of that size
// needs besides. fp8, nf4, fake: weights in that format.
double memory_bytes(std::string_view path, int size, bool both);

}  // namespace octet::predict
