// The VAE's decoder as a part of a model: sampled latents become pictures.
#pragma once

#include <functional>
#include <string>

#include "models/flux2_vae/vae.h"
#include "models/flux2_vae/vae_source.h"
#include "models/part.h"

namespace octet::flux2_vae {

class Decoder : public models::Decoder {
 public:
  // `path` as open_vae() takes it. `statistics` says how latents were normalised, asked once with
  // the configuration; none: only to look at. Checks that all weights are there.
  using StatisticsOf = std::function<LatentStatistics(const VaeConfig& config)>;
  Decoder(const std::string& path, const StatisticsOf& statistics);

  // Without files: for benchmarks and tests.
  Decoder(const VaeConfig& config, LatentStatistics statistics);

  const VaeConfig& config() const { return vae_.config; }

  std::string_view name() const override { return "vae"; }
  int64_t unit_count() const override { return 1; }
  void visit(int64_t unit, nn::WeightVisitor& visitor) override;
  void release(int64_t unit) override;
  bool is_ignored(std::string_view name) const override;

  int64_t token_side() const override { return kPatch * config().factor(); }
  int64_t latent_channels() const override { return kPatch * kPatch * config().latent_channels; }
  uint64_t image_bytes(const models::Grid& grid, DType dtype) const override {
    return flux2_vae::image_bytes(config(), kPatch * grid.height, kPatch * grid.width, dtype);
  }
  uint64_t least_image_bytes(const models::Grid& grid, DType dtype) const override {
    return flux2_vae::bytes_in_strips(config(), kPatch * grid.height, kPatch * grid.width, dtype)
        .least;
  }
  UnsetVector<float> decode(nn::Context& ctx, std::span<const float> latent,
                            const models::Grid& grid,
                            const std::function<void(double)>& progress) const override;

 private:
  Decoder(VaeSource source, const std::string& path, const StatisticsOf& statistics);

  VaeDecoder vae_;
  std::string path_;
  LatentStatistics statistics_;
};

}  // namespace octet::flux2_vae
