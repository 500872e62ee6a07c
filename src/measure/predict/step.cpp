#include "measure/predict/step.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/never_destroyed.h"
#include "measure/predict/calibration.h"
#include "models/footprint.h"

namespace octet::predict {
namespace {

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

// One forward pass of one network. In INT8, quantization rides on the norm where there is one
// before the linear, so of the first one of a block and of gate and up, and SwiGLU on the product;
// the inputs of the others are quantized by themselves. All other paths have the passes of bf16,
// and whole linears: so `octet map` computes their steps.
StepTime forward_time(const Card& card, const Coefficients& coefficients, std::string_view path,
                      int64_t tokens) {
  const models::BlockShape& block = measured_block();
  const Path kind = linear_path(path);
  const bool int8 = kind == Path::int8;
  // Of so many bytes for each token.
  const auto pass = [&](double bytes) {
    return row_pass_us(card, coefficients, bytes * double(tokens));
  };
  double rows_us = pass(2.0 * double(block.heads * block.head_size) * (2 + 2));  // rotary
  double linears_us = 0;
  for (const nn::LinearSpec& linear : block.linears) {
    const auto k = double(linear.k);
    const bool gated = linear.order == RowOrder::gate_up;
    if (gated || &linear == &block.linears.front()) {
      rows_us += pass(k * (2.0 + 2 + 2 + (int8 ? 1 : 2)));
    } else if (int8) {
      linears_us += pass(3.0 * k);
    }
    if (gated && !int8) rows_us += pass(3.0 * double(linear.n()));
    const auto time_of = int8 ? product_time : linear_time;
    linears_us += time_of(card, coefficients, kind, Load::steady, tokens, linear.n(), linear.k).us;
  }
  const Attention attention = path == "int8_attention" ? Attention::int8_scores : Attention::bf16;
  const double layers_ms = double(block.layers) * 1e-3;
  return {layers_ms * linears_us,
          layers_ms * attention_us(card, coefficients, attention, Load::steady, tokens, block.heads,
                                   block.head_size),
          layers_ms * rows_us};
}

std::vector<std::unique_ptr<models::Network>> measured_networks() {
  std::vector<std::unique_ptr<models::Network>> networks;
  for (size_t i = 0; i < measured_family().networks.size(); ++i) {
    networks.push_back(measured_family().synthetic_network(i, /*layers=*/0));
  }
  return networks;
}

// Of all networks, each size once.
models::DenoisingBytes step_bytes(int size, bool int8) {
  constexpr int64_t kTextTokens = 512, kSteps = 48;
  static std::mutex mutex;
  static auto& known = never_destroyed<std::map<std::pair<int, bool>, models::DenoisingBytes>>();
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace({size, int8});
  if (is_new) {
    const auto made = measured_networks();
    std::vector<models::Network*> networks;
    for (const auto& network : made) networks.push_back(network.get());
    const int64_t side = size / measured_family().sizes.token_side;
    found->second = models::denoising_bytes(
        networks, {.grid = {side, side}, .text_tokens = kTextTokens, .steps = kSteps},
        {.int8 = int8});
  }
  return found->second;
}

}  // namespace

const models::Family& measured_family() { return models::family_named(measured().family); }

const models::BlockShape& measured_block() {
  static const auto& block =
      never_destroyed<models::BlockShape>(models::block_shape(measured_family()));
  return block;
}

std::vector<StepTime> pass_times(const Card& card, const Coefficients& coefficients,
                                 std::string_view path, int64_t image_tokens, int text_tokens) {
  std::vector<StepTime> times;
  const Path kind = linear_path(path);
  const bool cannot =
      (kind == Path::fp8 && card.fp8 == 0) || (kind == Path::int8 && card.int8 == 0);
  for (const bool sees_text : measured_block().sees_text) {
    times.push_back(cannot ? StepTime()
                           : forward_time(card, coefficients, path,
                                          image_tokens + (sees_text ? text_tokens : 0)));
  }
  return times;
}

StepTime step_time(const Card& card, const Coefficients& coefficients, std::string_view path,
                   int size, int text_tokens) {
  StepTime step;
  const int64_t tokens = models::image_tokens(measured_family(), size);
  for (const StepTime& time : pass_times(card, coefficients, path, tokens, text_tokens)) {
    step.linears_ms += time.linears_ms;
    step.attention_ms += time.attention_ms;
    step.rows_ms += time.rows_ms;
  }
  return step;
}

double memory_bytes(std::string_view path, int size, bool both) {
  linear_path(path);  // says what is wrong
  const auto networks = measured_networks();
  uint64_t bytes = 0;
  for (size_t i = 0; i < (both ? networks.size() : 1); ++i) {
    bytes += models::weight_bytes_in(*networks[i], path);
  }
  const models::DenoisingBytes step = step_bytes(size, path == "int8");
  // A GPU's pool keeps what the first steps took when those that follow take a block of their own.
  bytes += step.all() + step.work + models::kOpsBytes +
           models::dequantized_bytes_in(*networks.front(), path);
  return static_cast<double>(bytes);
}

}  // namespace octet::predict
