#include "models/flux2_vae/decoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/ranges.h"
#include "weights/loader.h"

namespace octet::flux2_vae {

namespace {

bool all_finite(nn::Context& ctx, std::span<const float> values) {
  constexpr size_t kAtOnce = size_t{1} << 16;
  std::atomic<bool> finite = true;
  for_ranges(&ctx.backend.pool(), values.size(), kAtOnce, [&](size_t first, size_t count) {
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (!std::ranges::all_of(values.subspan(first, count), is_finite)) finite = false;
  });
  return finite;
}

}  // namespace

Decoder::Decoder(const std::string& path, const StatisticsOf& statistics)
    : Decoder(open_vae(path), path, statistics) {}

Decoder::Decoder(VaeSource source, const std::string& path, const StatisticsOf& statistics)
    : models::Decoder(std::move(source.weights)), path_(path) {
  vae_.config = std::move(source.config);
  weights::CheckpointCheck present(this->source());
  visit_all(present);
  present.check_nothing_is_left([&](std::string_view name) { return is_ignored(name); });
  if (statistics) statistics_ = statistics(vae_.config);
}

Decoder::Decoder(const VaeConfig& config, LatentStatistics statistics)
    : path_("vae"), statistics_(std::move(statistics)) {
  vae_.config = config;
}

void Decoder::visit(int64_t, nn::WeightVisitor& visitor) { visit_weights(vae_, visitor); }

void Decoder::release(int64_t) { static_cast<VaeWeights&>(vae_) = {}; }

// The encoder's half, and statistics that are read on their own.
bool Decoder::is_ignored(std::string_view name) const {
  return name.starts_with("encoder.") || name.starts_with("quant_conv.") || name.starts_with("bn.");
}

UnsetVector<float> Decoder::decode(nn::Context& ctx, std::span<const float> latent,
                                   const models::Grid& grid,
                                   const std::function<void(double)>& progress) const {
  const std::vector<float> pixels = unpatchify(latent, statistics_, grid.height, grid.width);
  need(0);
  const int64_t height = kPatch * grid.height, width = kPatch * grid.width;
  const nn::Matrix uploaded =
      nn::upload_matrix(ctx, pixels.data(), height * width, config().latent_channels);
  UnsetVector<float> values = flux2_vae::decode(ctx, vae_, uploaded, height, width, progress);
  check(all_finite(ctx, values),
        "{}: decoding gave a NaN or an infinity; its weights are damaged or of another model",
        path_);
  return values;
}

}  // namespace octet::flux2_vae
