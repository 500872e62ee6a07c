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

// What runs before the blocks, and after them.
void visit_entry(DitEntry& entry, const DitConfig& config, bool conditional,
                 nn::WeightVisitor& visit) {
  const int64_t d = config.hidden(), c = config.latent_channels, a = config.modulation;
  visit.linear(entry.input, plain("", "input_proj", d, c, /*bias=*/true));
  if (conditional) {
    visit.vector(entry.text_norm, "llm_cond_norm.weight", config.text_features);
    visit.linear(entry.text, plain("", "llm_cond_proj", d, config.text_features, /*bias=*/true));
  }
  visit.linear(entry.time_in, plain("", "t_embedding.mlp_in", d, d, /*bias=*/true));
  visit.linear(entry.time_out, plain("", "t_embedding.mlp_out", d, d, /*bias=*/true));
  visit.linear(entry.conditioning, plain("", "adaln_proj", a, d, /*bias=*/true));
  visit.table(entry.roles, "embed_image_indicator.weight", 2, d);
}

void visit_exit(DitExit& exit, const DitConfig& config, nn::WeightVisitor& visit) {
  const int64_t d = config.hidden(), c = config.latent_channels, a = config.modulation;
  visit.linear(exit.modulation, plain("", "final_layer.adaln_modulation", d, a, /*bias=*/true));
  visit.linear(exit.linear, plain("", "final_layer.linear", c, d, /*bias=*/true));
}

void visit_block(DitBlock& block, const DitConfig& config, int64_t i, nn::WeightVisitor& visit) {
  const std::string at = "layers." + std::to_string(i) + ".";
  const int64_t d = config.hidden(), f = config.ffn;
  visit.linear(block.modulation,
               plain(at, "adaln_modulation", 4 * d, config.modulation, /*bias=*/true));
  visit.vector(block.attention_norm1, at + "attention_norm1.weight", d);
  visit.vector(block.attention_norm2, at + "attention_norm2.weight", d);
  visit.vector(block.ffn_norm1, at + "ffn_norm1.weight", d);
  visit.vector(block.ffn_norm2, at + "ffn_norm2.weight", d);
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

int64_t unit_count(const DitConfig& config) { return config.layers + 2; }

void visit_unit(Dit& dit, bool conditional, int64_t unit, nn::WeightVisitor& visit) {
  const DitConfig& config = dit.config;
  dit.blocks.resize(static_cast<size_t>(config.layers));
  if (unit == 0) return visit_entry(dit.entry, config, conditional, visit);
  if (unit == config.layers + 1) return visit_exit(dit.exit, config, visit);
  visit_block(dit.blocks[static_cast<size_t>(unit - 1)], config, unit - 1, visit);
}

void visit_weights(Dit& dit, bool conditional, nn::WeightVisitor& visit) {
  for (int64_t unit = 0; unit < unit_count(dit.config); ++unit) {
    visit_unit(dit, conditional, unit, visit);
  }
}

}  // namespace octet::ideogram4
