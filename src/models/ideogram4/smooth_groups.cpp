#include "models/ideogram4/smooth_groups.h"

namespace octet::ideogram4 {

// Four places of a block, each of which scales its channels exactly:
// - qkv and the FFN see a norm times its weight times a modulation without shift;
// - attention mixes rows of v and leaves its channels apart, so that o sees those of v;
// - w2 sees silu(w1 x) times w3 x, which is linear in the rows of w3.
std::vector<quant::SmoothGroup> smooth_groups(const DitConfig& config) {
  std::vector<quant::SmoothGroup> groups;
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const std::string qkv = at + "attention.qkv", out = at + "attention.o";
    const std::string w1 = at + "feed_forward.w1", w2 = at + "feed_forward.w2",
                      w3 = at + "feed_forward.w3";
    groups.push_back({.inputs = qkv, .modules = {qkv}, .vector = at + "attention_norm1.weight"});
    groups.push_back(
        {.inputs = out, .modules = {out}, .rows_of = qkv, .first_row = 2 * config.hidden()});
    groups.push_back({.inputs = w1, .modules = {w1, w3}, .vector = at + "ffn_norm1.weight"});
    groups.push_back({.inputs = w2, .modules = {w2}, .rows_of = w3});
  }
  return groups;
}

}  // namespace octet::ideogram4
