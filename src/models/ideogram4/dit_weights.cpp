// The list of the transformer's weights, under the names of the two public layouts.
#include <algorithm>
#include <string>

#include "models/ideogram4/dit.h"

namespace octet::ideogram4 {
namespace {

using nn::LinearSpec;

bool is_large(const std::string& layer) {
  return std::ranges::find(kKeptInFloat, layer) == std::end(kKeptInFloat);
}

// A linear that both layouts store under one name; `before` is its place, which the class of its
// layer leaves out.
LinearSpec plain(const std::string& before, const std::string& layer, int64_t n, int64_t k,
                 bool bias = false) {
  return {.layer = layer,
          .k = k,
          .bias = bias,
          .layouts = {{{before + layer, n}}},
          .large = is_large(layer)};
}

void visit_entry(DitEntry& entry, const DitConfig& config, nn::WeightVisitor& visit) {
  const int64_t d = config.hidden();
  visit.linear(entry.input, plain("", "input_proj", d, config.latent_channels, /*bias=*/true));
  visit.table(entry.roles, "embed_image_indicator.weight", 2, d);
}

void visit_times(DitTimes& times, const DitConfig& config, nn::WeightVisitor& visit) {
  const int64_t d = config.hidden();
  visit.linear(times.time_in, plain("", "t_embedding.mlp_in", d, d, /*bias=*/true));
  visit.linear(times.time_out, plain("", "t_embedding.mlp_out", d, d, /*bias=*/true));
  visit.linear(times.conditioning, plain("", "adaln_proj", config.modulation, d, /*bias=*/true));
}

void visit_text(DitText& text, const DitConfig& config, nn::WeightVisitor& visit) {
  const int64_t d = config.hidden();
  visit.vector(text.norm, "llm_cond_norm.weight", config.text_features);
  visit.linear(text.linear, plain("", "llm_cond_proj", d, config.text_features, /*bias=*/true));
}

void visit_modulation(DitModulation& modulation, const DitConfig& config, int64_t i,
                      nn::WeightVisitor& visit) {
  const std::string at = "layers." + std::to_string(i) + ".";
  const int64_t d = config.hidden();
  visit.linear(modulation.linear,
               plain(at, "adaln_modulation", 4 * d, config.modulation, /*bias=*/true));
  visit.vector(modulation.ffn_norm2, at + "ffn_norm2.weight", d);
}

void visit_block(DitBlock& block, const DitConfig& config, int64_t i, nn::WeightVisitor& visit) {
  const std::string at = "layers." + std::to_string(i) + ".";
  const int64_t d = config.hidden(), f = config.ffn;
  visit.vector(block.attention_norm1, at + "attention_norm1.weight", d);
  visit.vector(block.attention_norm2, at + "attention_norm2.weight", d);
  visit.vector(block.ffn_norm1, at + "ffn_norm1.weight", d);
  visit.linear(block.qkv, {.layer = "attention.qkv",
                           .k = d,
                           .layouts = {{{at + "attention.qkv", 3 * d}},
                                       {{at + "attention.to_q", d},
                                        {at + "attention.to_k", d},
                                        {at + "attention.to_v", d}}},
                           .large = is_large("attention.qkv")});
  visit.vector(block.norm_q, at + "attention.norm_q.weight", config.head_dim);
  visit.vector(block.norm_k, at + "attention.norm_k.weight", config.head_dim);
  visit.linear(block.attention_out,
               {.layer = "attention.o",
                .k = d,
                .layouts = {{{at + "attention.o", d}}, {{at + "attention.to_out.0", d}}},
                .large = is_large("attention.o")});
  visit.linear(block.gate_up,
               {.layer = "feed_forward.w1+w3",
                .k = d,
                .layouts = {{{at + "feed_forward.w1", f}, {at + "feed_forward.w3", f}}},
                .order = RowOrder::gate_up,
                .large = is_large("feed_forward.w1+w3")});
  visit.linear(block.down, plain(at, "feed_forward.w2", d, f));
}

}  // namespace

void visit_unit(Dit& dit, int64_t unit, nn::WeightVisitor& visit) {
  const DitConfig& config = dit.config;
  const DitUnits units(config);
  const auto layers = static_cast<size_t>(config.layers);
  dit.blocks.resize(layers);
  dit.modulations.resize(layers);
  if (unit == units.entry()) return visit_entry(dit.entry, config, visit);
  if (unit < units.exit()) {
    const int64_t i = unit - units.block(0);
    return visit_block(dit.blocks[static_cast<size_t>(i)], config, i, visit);
  }
  const int64_t d = config.hidden();
  if (unit == units.exit()) {
    return visit.linear(dit.exit, plain("", "final_layer.linear", config.latent_channels, d,
                                        /*bias=*/true));
  }
  if (unit == units.times()) return visit_times(dit.times, config, visit);
  if (unit < units.exit_modulation()) {
    const int64_t i = unit - units.modulation(0);
    return visit_modulation(dit.modulations[static_cast<size_t>(i)], config, i, visit);
  }
  if (unit == units.exit_modulation()) {
    return visit.linear(dit.exit_modulation, plain("", "final_layer.adaln_modulation", d,
                                                   config.modulation, /*bias=*/true));
  }
  visit_text(dit.text, config, visit);
}

void release_unit(Dit& dit, int64_t unit) {
  const DitUnits units(dit.config);
  if (unit == units.entry()) {
    dit.entry = {};
  } else if (unit < units.exit()) {
    if (!dit.blocks.empty()) dit.blocks[static_cast<size_t>(unit - units.block(0))] = {};
  } else if (unit == units.exit()) {
    dit.exit = {};
  } else if (unit == units.times()) {
    dit.times = {};
  } else if (unit < units.exit_modulation()) {
    const auto i = static_cast<size_t>(unit - units.modulation(0));
    if (!dit.modulations.empty()) dit.modulations[i] = {};
  } else if (unit == units.exit_modulation()) {
    dit.exit_modulation = {};
  } else {
    dit.text = {};
  }
}

void visit_weights(Dit& dit, bool conditional, nn::WeightVisitor& visit) {
  for (int64_t unit = 0; unit < DitUnits(dit.config).count(conditional); ++unit) {
    visit_unit(dit, unit, visit);
  }
}

}  // namespace octet::ideogram4
