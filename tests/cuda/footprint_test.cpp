// A GPU's memory while networks of the published sizes denoise: at least what the footprint counts,
// and no more beside it than single ops may take.
#include "cuda_support.h"
#include "models/family.h"
#include "models/footprint_run.h"

namespace octet::test {
namespace {

class FootprintOnGpu : public OnGpu {};

TEST_F(FootprintOnGpu, IsWhatTheAllocatorCounts) {
  const auto backend = make_gpu();
  const models::Family& family = models::family_named("ideogram4");
  const auto first = family.synthetic_network(0, 1), second = family.synthetic_network(1, 1);
  const std::vector<models::Network*> networks = {first.get(), second.get()};
  for (const bool int8 : {true, false}) {
    for (const int64_t side : {16, 64}) {
      const models::Extent extent{.grid = {side, side}, .text_tokens = 512, .steps = 4};
      const models::RunAs how{.int8 = int8};
      const uint64_t counted = models::denoising_bytes(networks, extent, how).all();
      const uint64_t peak = denoising_peak(*backend, networks, extent, how);
      RecordProperty("counted_bytes", std::to_string(counted));
      RecordProperty("peak_bytes", std::to_string(peak));
      EXPECT_GE(peak, counted) << side << " tokens along a side, int8 " << int8;
      EXPECT_LE(peak, counted + models::kOpsBytes) << side << ", int8 " << int8;
    }
  }
}

TEST_F(FootprintOnGpu, WeightsAreWhatTheAllocatorCounts) {
  const auto backend = make_gpu();
  const auto network = models::family_named("ideogram4").synthetic_network(1, 1);
  const uint64_t before = backend->memory().used;
  weights::RandomWeights make(*backend, {.int8 = true});
  network->visit_all(make);
  EXPECT_EQ(models::weight_bytes(*network, {}, backend.get()).all, backend->memory().used - before);
  network->release_all();
}

}  // namespace
}  // namespace octet::test
