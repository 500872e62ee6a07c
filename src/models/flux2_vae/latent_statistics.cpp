#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/flux2_vae/vae.h"
#include "weights/stored_weight.h"

namespace octet::flux2_vae {

LatentStatistics stored_statistics(const Checkpoint& vae, const VaeConfig& config, DType dtype) {
  const int64_t channels = config.latent_channels * kPatch * kPatch;
  LatentStatistics statistics;
  statistics.shift.resize(static_cast<size_t>(channels));
  statistics.scale.resize(static_cast<size_t>(channels));
  weights::read_vector(vae, "bn.running_mean", {channels}, statistics.shift.data());
  weights::read_vector(vae, "bn.running_var", {channels}, statistics.scale.data());
  const auto rounded = [&](float x) {
    return dtype == DType::bf16 ? to_f32(from_f32<bf16_t>(x)) : x;
  };
  for (float& shift : statistics.shift) shift = rounded(shift);
  for (float& scale : statistics.scale) {
    check(scale >= 0, "{}: tensor \"bn.running_var\" holds {}, expected no negative number",
          vae.path(), scale);
    scale = rounded(std::sqrt(rounded(rounded(scale) + config.statistics_eps)));
  }
  return statistics;
}

}  // namespace octet::flux2_vae
