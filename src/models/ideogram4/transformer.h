// A transformer of Ideogram 4 as a part of a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/ideogram4/dit.h"
#include "models/ideogram4/dit_source.h"
#include "models/part.h"

namespace octet::ideogram4 {

class Transformer : public models::Network {
 public:
  // Checks that its files have all weights, and nothing else.
  Transformer(const PartFiles& files, bool conditional);
  // Without files: for benchmarks and tests.
  Transformer(const DitConfig& config, bool conditional);

  const DitConfig& config() const { return dit_.config; }

  std::string_view name() const override;
  int64_t unit_count() const override { return DitUnits(config()).count(conditional_); }
  int64_t pass_units() const override { return DitUnits(config()).of_pass(); }
  void visit(int64_t unit, nn::WeightVisitor& visitor) override;
  void release(int64_t unit) override;
  bool is_ignored(std::string_view name) const override;

  int64_t latent_channels() const override { return config().latent_channels; }
  bool sees_text() const override { return conditional_; }
  int64_t text_features() const override { return config().text_features; }
  std::unique_ptr<models::Conditioning> prepare(nn::Context& ctx, std::span<const float> features,
                                                const models::Grid& grid) const override;
  std::unique_ptr<models::Timeline> make_timeline(nn::Context& ctx,
                                                  std::span<const float> times) const override;
  void velocity(nn::Context& ctx, const models::Conditioning& conditioning,
                models::Timeline& timeline, const ConstTensorView& z,
                const TensorView& out) const override;

  std::string config_text() const override { return ideogram4::config_text(config()); }
  void visit_stored(nn::WeightVisitor& visitor) override;
  std::vector<quant::SmoothGroup> smooth_groups() const override;

 private:
  Transformer(DitSource source, bool conditional);
  NeedUnit needed() const {
    return [this](int64_t unit) { need(unit); };
  }

  Dit dit_;
  bool conditional_;
};

}  // namespace octet::ideogram4
