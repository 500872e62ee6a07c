// A text tower in INT8 on a GPU: resident, from host memory and streamed, beside its features in
// bf16.
#include "cuda_support.h"
#include "models/small_tower.h"

namespace octet::test {
namespace {

class TextInt8OnGpu : public OnGpu {};

TEST_F(TextInt8OnGpu, FeaturesStayCloseWhereverItsWeightsWait) {
  const TemporaryFolder folder;
  const std::string path = write_tower(folder, 20);
  const auto backend = make_gpu();
  const auto tokens = SmallTower::tokens();
  const engine::LoadRules int8 = {.int8 = true, .rotation = 256};
  const auto features = [&](const engine::LoadRules& rules, Residency where) {
    return features_by(*backend, path, SmallTower::kTaps, tokens, rules, where);
  };
  const UnsetVector<float> floating = features({.int8 = false}, Residency::device);
  const UnsetVector<float> resident = features(int8, Residency::device);
  const TokenCosines apart = cosines_of(floating, resident, tokens.size());
  EXPECT_GE(apart.worst, 0.998);
  EXPECT_LT(apart.mean, 1 - 1e-7) << "nothing was quantized";
  EXPECT_EQ(features(int8, Residency::host), resident);
  EXPECT_EQ(features(int8, Residency::streamed), resident);
}

}  // namespace
}  // namespace octet::test
