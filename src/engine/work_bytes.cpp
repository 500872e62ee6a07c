#include "engine/work_bytes.h"

#include <algorithm>
#include <vector>

namespace octet::engine {
namespace {

double slope(uint64_t low, uint64_t high, int64_t from, int64_t to) {
  return (static_cast<double>(high) - static_cast<double>(low)) / static_cast<double>(to - from);
}

}  // namespace

double WorkBytes::Growth::at(const models::Extent& extent) const {
  return base + per_token * static_cast<double>(extent.grid.tokens()) +
         per_text_token * static_cast<double>(extent.text_tokens) +
         per_step * static_cast<double>(extent.steps);
}

WorkBytes::WorkBytes(models::Model& model, const models::RunAs& how, const models::RunAs& text) {
  constexpr int64_t kSide = 1024, kTextTokens = 512, kSteps = 48;
  constexpr int64_t kFewTextTokens = 64, kFewSteps = 4;
  const int64_t side = std::max(kSide / model.decoder->token_side(), int64_t{2});
  usual_ = {.grid = {side, side}, .text_tokens = kTextTokens, .steps = kSteps};
  std::vector<models::Network*> networks;
  for (const auto& network : model.networks) networks.push_back(network.get());
  const auto denoising = [&](const models::Extent& extent) {
    return models::denoising_bytes(networks, extent, how).all();
  };
  models::Extent small = usual_, few_words = usual_, few_steps = usual_;
  small.grid = {side / 2, side / 2};
  few_words.text_tokens = kFewTextTokens;
  few_steps.steps = kFewSteps;
  const int64_t tokens = usual_.grid.tokens(), few_tokens = small.grid.tokens();
  const uint64_t usual = denoising(usual_);
  denoising_.per_token = slope(denoising(small), usual, few_tokens, tokens);
  denoising_.per_text_token = slope(denoising(few_words), usual, kFewTextTokens, kTextTokens);
  denoising_.per_step = slope(denoising(few_steps), usual, kFewSteps, kSteps);
  denoising_.base = static_cast<double>(usual) - denoising_.at(usual_);

  const auto encoding = [&](int64_t count) {
    return models::encoding_bytes(*model.text_encoder, count, text);
  };
  const uint64_t usual_text = encoding(kTextTokens);
  encoding_.per_text_token =
      slope(encoding(kFewTextTokens), usual_text, kFewTextTokens, kTextTokens);
  encoding_.base = static_cast<double>(usual_text) - encoding_.at(usual_);

  const auto decoding = [&](const models::Grid& grid) {
    return models::decoding_bytes(*model.decoder, grid, how.dtype);
  };
  const uint64_t usual_image = decoding(usual_.grid);
  decoding_.per_token = slope(decoding(small.grid), usual_image, few_tokens, tokens);
  decoding_.base = static_cast<double>(usual_image) - decoding_.at(usual_);
}

uint64_t WorkBytes::of(const models::Extent& extent) const {
  const double ops = static_cast<double>(models::kOpsBytes);
  const double step = static_cast<double>(extent.batch) * denoising_.at(extent);
  return static_cast<uint64_t>(
      std::max(std::max(step, encoding_.at(extent)) + ops, decoding_.at(extent)));
}

}  // namespace octet::engine
