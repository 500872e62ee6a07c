// A denoising step on a card, of the family whose steps were measured: one pass of each network.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "measure/predict/model.h"
#include "models/block_shape.h"

namespace octet::predict {

const models::Family& measured_family();
const models::BlockShape& measured_block();

// Linears have the quantizations that are no part of a norm, and the dequantizations.
struct StepTime {
  double linears_ms = 0, attention_ms = 0, rows_ms = 0;
  double ms() const { return linears_ms + attention_ms + rows_ms; }
};

// Of each network's pass, in their order, with so many tokens of a picture.
std::vector<StepTime> pass_times(const Card& card, const Coefficients& coefficients,
                                 std::string_view path, int64_t image_tokens, int text_tokens);

// `path`: int8, int8_attention (INT8 scores as well), bf16, fp8, nf4, fake. All zero where the card
// cannot. Without pause.
StepTime step_time(const Card& card, const Coefficients& coefficients, std::string_view path,
                   int size, int text_tokens);

// Weights of all networks, or of the first one alone, and what a picture of that size needs
// besides. fp8, nf4, fake: weights in that format.
double memory_bytes(std::string_view path, int size, bool both);

}  // namespace octet::predict
