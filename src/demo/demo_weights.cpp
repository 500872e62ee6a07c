#include "demo/demo_weights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "models/flux2_vae/vae.h"
#include "models/ideogram4/dit.h"
#include "models/ideogram4/latent_statistics.h"
#include "models/ideogram4/text_features.h"
#include "models/qwen3/text_encoder.h"
#include "weights/random_weights.h"

namespace octet::demo {
namespace {

using weights::RandomTensor;

constexpr uint64_t kSeed = 9;

// --- the transformers
// -----------------------------------------------------------------------------

constexpr int64_t kHidden = 256;
constexpr int64_t kTokenChannels = 128, kLatentChannels = 32;

// What a hidden channel is for.
bool carries_latent(int64_t channel) { return channel < 128; }
bool tells_role(int64_t channel) { return channel >= 128 && channel < 192; }
bool holds_picture(int64_t channel) { return channel >= 192; }

constexpr float kLatentGain = 0.25f;  // of the latent in its hidden channels
constexpr float kRoleGain = 2;
constexpr float kHiddenDeviation = 1.1f;  // of all of them, before the last layer
constexpr float kPull = 9;                // per unit of time: twelve steps leave no noise
constexpr float kPictureGain = 2;
constexpr float kAttentionGate = 0.8f, kFfnGate = 0.56f;

// Attention looks at the places of tokens mainly by these frequencies: their waves are five to a
// hundred tokens long. With the others alone all tokens would look alike, or all different.
float head_weight(int64_t channel, int64_t head_dim) {
  const int64_t frequency = channel % (head_dim / 2);
  const bool is_of_a_picture = frequency % 3 != 0 && frequency <= 8;
  return is_of_a_picture ? 3.0f : 0.4f;
}

// The encoder's later layers tell the tokens of a caption less apart.
float tap_weight(int64_t feature) { return feature % ideogram4::kTaps < 4 ? 1.8f : 0.2f; }

// Calls change(value, row, column) for each element of a matrix.
template <class Change>
void for_each(const RandomTensor& tensor, std::span<float> values, Change change) {
  const int64_t columns = tensor.shape.back();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    change(values[i], at / columns, at % columns);
  }
}

void shape_input(const RandomTensor& tensor, std::span<float> values) {
  for_each(tensor, values, [](float& value, int64_t row, int64_t column) {
    value = row == column ? kLatentGain : 0;
  });
}

void shape_output(const RandomTensor& tensor, std::span<float> values) {
  const std::vector<float> random(values.begin(), values.end());
  for_each(tensor, values, [&](float& value, int64_t row, int64_t column) {
    value = row == column ? -kPull * kHiddenDeviation / kLatentGain : 0;
    if (!holds_picture(column)) return;
    // The four pixels of a token are alike. A quarter of the channels has the whole deviation.
    const int64_t as_row = row % kLatentChannels;
    value = 2 * kPictureGain * random[static_cast<size_t>(as_row * kHidden + column)];
  });
}

// Chunks of scale and gate of attention, then of the FFN. Gates are open for the picture alone.
void shape_modulation(const RandomTensor& tensor, std::span<float> values, bool is_bias) {
  const int64_t columns = is_bias ? 1 : tensor.shape.back();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / columns;
    const int64_t chunk = row / kHidden;
    const bool is_gate = chunk % 2 == 1;
    if (!is_gate) {
      values[i] *= is_bias ? 5 : 0.1f;
    } else if (!is_bias || !holds_picture(row % kHidden)) {
      values[i] = 0;
    } else {
      values[i] = (chunk == 1 ? kAttentionGate : kFfnGate) * (1 + 10 * values[i]);
    }
  }
}

void shape_transformer(const RandomTensor& tensor, std::span<float> values) {
  const std::string& name = tensor.name;
  const auto ends = [&](const char* end) { return name.ends_with(end); };
  const auto scale_columns = [&](auto factor) {
    for_each(tensor, values,
             [&](float& value, int64_t, int64_t column) { value *= factor(column); });
  };
  if (name == "input_proj.weight") {
    shape_input(tensor, values);
  } else if (name == "embed_image_indicator.weight") {
    scale_columns([](int64_t channel) { return tells_role(channel) ? kRoleGain : 0; });
  } else if (name == "llm_cond_proj.weight") {
    scale_columns(tap_weight);
  } else if (name == "final_layer.linear.weight") {
    shape_output(tensor, values);
  } else if (name == "final_layer.adaln_modulation.weight") {
    scale_columns([](int64_t) { return 0.1f; });
  } else if (ends("adaln_modulation.weight") ||
             (ends("adaln_modulation.bias") && !name.starts_with("final"))) {
    shape_modulation(tensor, values, ends(".bias"));
  } else if (ends(".bias")) {
    std::fill(values.begin(), values.end(), 0.0f);
  } else if (ends("norm_q.weight") || ends("norm_k.weight")) {
    scale_columns([&](int64_t channel) { return head_weight(channel, tensor.shape[0]); });
  } else if (ends("to_q.weight") || ends("to_k.weight")) {
    scale_columns([](int64_t channel) { return carries_latent(channel) ? 0.5f : 1.0f; });
  } else if (ends("to_v.weight")) {
    scale_columns([](int64_t channel) { return tells_role(channel) ? 0.0f : 1.0f; });
  } else if (ends("w1.weight") || ends("w3.weight")) {
    scale_columns([](int64_t channel) {
      return tells_role(channel) ? 0.0f : carries_latent(channel) ? 0.3f : 1.0f;
    });
  }
}

// --- the text encoder
// -----------------------------------------------------------------------------

// 72 of these add up.
void shape_text_encoder(const RandomTensor& tensor, std::span<float> values) {
  if (!tensor.name.ends_with("o_proj.weight") && !tensor.name.ends_with("down_proj.weight")) return;
  for (float& value : values) value *= 0.5f;
}

// --- the VAE
// --------------------------------------------------------------------------------------

// Channels are mixed at random, and pixels blurred where the image has just been doubled: at the
// input two by two pixels are alike. `kernel`: the weights of nine pixels.
void spread_taps(std::span<float> values, const float (&kernel)[9]) {
  for (size_t first = 0; first < values.size(); first += 9) {
    const float mix = 3 * values[first + 4];  // of as many inputs, not of nine times as many
    for (size_t tap = 0; tap < 9; ++tap) values[first + tap] = mix * kernel[tap];
  }
}

// Takes from the weights of each output their mean: what all inputs have in common is not seen.
void balance_rows(const RandomTensor& tensor, std::span<float> values) {
  const auto in = static_cast<size_t>(tensor.shape[1]);
  const size_t taps = values.size() / static_cast<size_t>(tensor.shape[0]) / in;
  for (size_t row = 0; row < values.size(); row += in * taps) {
    for (size_t tap = 0; tap < taps; ++tap) {
      float mean = 0;
      for (size_t i = 0; i < in; ++i) mean += values[row + i * taps + tap];
      mean /= static_cast<float>(in);
      for (size_t i = 0; i < in; ++i) values[row + i * taps + tap] -= mean;
    }
  }
}

void shape_vae(const RandomTensor& tensor, std::span<float> values) {
  constexpr float kBlur[9] = {1 / 16.0f, 2 / 16.0f, 1 / 16.0f, 2 / 16.0f, 4 / 16.0f,
                              2 / 16.0f, 1 / 16.0f, 2 / 16.0f, 1 / 16.0f};
  constexpr float kSharp[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
  const std::string& name = tensor.name;
  const auto scale = [&](float factor) {
    for (float& value : values) value *= factor;
  };
  if (name == "bn.running_mean" || name == "bn.running_var") {
    const auto statistics = ideogram4::published_statistics();
    for (size_t i = 0; i < values.size(); ++i) {
      const float variance = statistics.scale[i] * statistics.scale[i];
      values[i] = name == "bn.running_mean" ? statistics.shift[i]
                                            : variance - demo_vae_config().statistics_eps;
    }
  } else if (name.ends_with(".bias")) {
    scale(0);
  } else if (tensor.shape.size() == 1) {
    scale(1.5f);  // norms: their contrast shapes contours
  } else if (tensor.shape.size() == 4 && tensor.shape[2] == 3) {
    const bool is_doubled =
        name.find("upsamplers") != name.npos || name.ends_with("conv_in.weight");
    spread_taps(values, is_doubled ? kBlur : kSharp);
    if (name.ends_with("conv2.weight") || name.ends_with("conv_out.weight")) {
      balance_rows(tensor, values);
      scale(0.7f);
    }
  }
}

// The encoder is for other readers of the folder: they make the whole VAE or none.
void visit_encoder(const flux2_vae::VaeConfig& config, nn::WeightVisitor& visit) {
  nn::Conv conv;
  nn::Vector vector;
  nn::Linear linear;
  const auto visit_norm = [&](const std::string& name, int64_t channels) {
    visit.vector(vector, name + ".weight", channels);
    visit.vector(vector, name + ".bias", channels);
  };
  const auto visit_resnet = [&](const std::string& name, int64_t in, int64_t out) {
    visit_norm(name + ".norm1", in);
    visit.conv(conv, {name + ".conv1", out, in, 3});
    visit_norm(name + ".norm2", out);
    visit.conv(conv, {name + ".conv2", out, out, 3});
    if (in != out) visit.conv(conv, {name + ".conv_shortcut", out, in, 1});
  };
  const int64_t widest = config.channels.back(), moments = 2 * config.latent_channels;
  visit.conv(conv, {"encoder.conv_in", config.channels[0], 3, 3});
  int64_t channels = config.channels[0];
  for (size_t i = 0; i < config.channels.size(); ++i) {
    const std::string block = "encoder.down_blocks." + std::to_string(i);
    for (int64_t j = 0; j + 1 < config.resnets; ++j) {
      visit_resnet(block + ".resnets." + std::to_string(j), channels, config.channels[i]);
      channels = config.channels[i];
    }
    if (i + 1 < config.channels.size()) {
      visit.conv(conv, {block + ".downsamplers.0.conv", channels, channels, 3});
    }
  }
  const std::string mid = "encoder.mid_block.";
  visit_resnet(mid + "resnets.0", widest, widest);
  visit_norm(mid + "attentions.0.group_norm", widest);
  for (const char* part : {"to_q", "to_k", "to_v", "to_out.0"}) {
    visit.linear(
        linear, {.k = widest, .bias = true, .layouts = {{{mid + "attentions.0." + part, widest}}}});
  }
  visit_resnet(mid + "resnets.1", widest, widest);
  visit_norm("encoder.conv_norm_out", widest);
  visit.conv(conv, {"encoder.conv_out", moments, widest, 3});
  visit.conv(conv, {"quant_conv", moments, moments, 1});
}

using Shape = void (*)(const RandomTensor& tensor, std::span<float> values);

// Tensors are small enough to be filled whole.
void write(const std::string& path, const weights::TensorList& list, DType dtype, uint64_t seed,
           Shape shape) {
  write_tensors(path, list.tensors(), dtype,
                [&](const RandomTensor& tensor, int64_t first, std::span<float> values) {
                  fill_random(seed, tensor, default_spread(tensor), first, values);
                  shape(tensor, values);
                });
}

}  // namespace

ideogram4::DitConfig demo_dit_config() {
  ideogram4::DitConfig config;
  config.latent_channels = kTokenChannels;
  config.layers = 4;
  config.heads = 4;
  config.head_dim = kHidden / config.heads;
  config.ffn = 640;
  config.modulation = 64;
  config.text_features = ideogram4::kTaps * demo_text_config(1).hidden;
  config.mrope_section = {12, 10, 10};
  return config;
}

qwen3::TextConfig demo_text_config(int64_t vocabulary) {
  qwen3::TextConfig config;
  config.hidden = 64;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.ffn = 128;
  config.vocabulary = vocabulary;
  return config;
}

flux2_vae::VaeConfig demo_vae_config() {
  flux2_vae::VaeConfig config;
  config.latent_channels = kLatentChannels;
  config.channels = {32, 32, 64, 64};
  config.resnets = 2;
  return config;
}

void write_demo_transformer(const std::string& path, DemoPart part) {
  ideogram4::Dit dit;
  dit.config = demo_dit_config();
  weights::TensorList list;
  // Repositories hold the text's weights in both.
  visit_weights(dit, /*conditional=*/true, list);
  const uint64_t seed = part == DemoPart::transformer ? kSeed : kSeed + 100;
  write(path, list, DType::bf16, seed, shape_transformer);
}

void write_demo_text_encoder(const std::string& path, const qwen3::TextConfig& config) {
  weights::TensorList list("language_model.");
  nn::Table embedding;
  visit_embedding(embedding, config, list);
  for (int64_t i = 0; i < config.layers; ++i) {
    qwen3::TextLayer layer;
    visit_layer(layer, config, i, list);
  }
  nn::Vector norm;
  list.vector(norm, "norm.weight", config.hidden);
  write(path, list, DType::bf16, kSeed + 300, shape_text_encoder);
}

void write_demo_vae(const std::string& path) {
  flux2_vae::VaeDecoder vae;
  vae.config = demo_vae_config();
  weights::TensorList list;
  visit_weights(vae, list);
  visit_encoder(vae.config, list);
  nn::Vector statistics;
  list.vector(statistics, "bn.running_mean", kTokenChannels);
  list.vector(statistics, "bn.running_var", kTokenChannels);
  write(path, list, DType::f32, kSeed + 200, shape_vae);
}

}  // namespace octet::demo
