#include "models/ideogram4/transformer.h"

#include <utility>

#include "models/ideogram4/files.h"
#include "weights/loader.h"

namespace octet::ideogram4 {

Transformer::Transformer(const PartFiles& files, bool conditional)
    : Transformer(open_dit(files, conditional), conditional) {
  weights::CheckpointCheck present(source());
  visit_stored(present);
  present.check_nothing_is_left([&](std::string_view name) { return is_ignored(name); });
}

Transformer::Transformer(DitSource source, bool conditional)
    : Network(std::move(source.weights)), conditional_(conditional) {
  dit_.config = source.config;
}

Transformer::Transformer(const DitConfig& config, bool conditional) : conditional_(conditional) {
  dit_.config = config;
}

std::string_view Transformer::name() const {
  return conditional_ ? kTransformer : kUnconditionalTransformer;
}

void Transformer::visit(int64_t unit, nn::WeightVisitor& visitor) {
  visit_unit(dit_, unit, visitor);
}

void Transformer::release(int64_t unit) { release_unit(dit_, unit); }

bool Transformer::is_ignored(std::string_view name) const {
  return ideogram4::is_ignored(name, conditional_);
}

std::unique_ptr<models::Conditioning> Transformer::prepare(nn::Context& ctx,
                                                           std::span<const float> features,
                                                           const models::Grid& grid) const {
  return std::make_unique<DitPrompt>(ideogram4::prepare(ctx, dit_, features, grid, needed()));
}

std::unique_ptr<models::Timeline> Transformer::make_timeline(nn::Context& ctx,
                                                             std::span<const float> times) const {
  return std::make_unique<DitTimeline>(ctx, dit_, times, needed());
}

void Transformer::velocity(nn::Context& ctx, const models::Conditioning& conditioning,
                           models::Timeline& timeline, const ConstTensorView& z,
                           const TensorView& out) const {
  forward(ctx, dit_, dynamic_cast<const DitPrompt&>(conditioning),
          dynamic_cast<DitTimeline&>(timeline), z, out, needed());
}

// Files of the unconditional one have the text's weights, too, and never use them.
void Transformer::visit_stored(nn::WeightVisitor& visitor) {
  const bool with_text = conditional_ || source().find("llm_cond_norm.weight") != nullptr;
  Dit listed;
  listed.config = config();
  visit_weights(listed, with_text, visitor);
}

// Four places of a block, each of which scales its channels exactly:
// - qkv and the FFN see a norm times its weight times a modulation without shift;
// - attention mixes rows of v and leaves its channels apart, so that o sees those of v;
// - w2 sees silu(w1 x) times w3 x, which is linear in the rows of w3.
// Names are those of the fused layout.
std::vector<quant::SmoothGroup> Transformer::smooth_groups() const {
  std::vector<quant::SmoothGroup> groups;
  for (int64_t i = 0; i < config().layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const std::string qkv = at + "attention.qkv", out = at + "attention.o";
    const std::string w1 = at + "feed_forward.w1", w2 = at + "feed_forward.w2",
                      w3 = at + "feed_forward.w3";
    groups.push_back({.inputs = qkv, .modules = {qkv}, .vector = at + "attention_norm1.weight"});
    groups.push_back(
        {.inputs = out, .modules = {out}, .rows_of = qkv, .first_row = 2 * config().hidden()});
    groups.push_back({.inputs = w1, .modules = {w1, w3}, .vector = at + "ffn_norm1.weight"});
    groups.push_back({.inputs = w2, .modules = {w2}, .rows_of = w3});
  }
  return groups;
}

}  // namespace octet::ideogram4
