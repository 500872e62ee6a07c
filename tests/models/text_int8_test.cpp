// The text encoder with its linears in INT8: how far its features are from those in bf16, and that
// it is one computation wherever its weights wait.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cpu/cpu_backend.h"
#include "models/footprint.h"
#include "models/ideogram4/text_features.h"
#include "models/qwen3/chat_prompt.h"
#include "models/small_tower.h"
#include "models/tokenizer/unicode.h"
#include "ref/ref_backend.h"
#include "support.h"

namespace octet::test {
namespace {

using engine::LoadRules;

// What features in INT8 have to reach, of every token.
constexpr double kLeastCosine = 0.998;
const LoadRules kFloating = {.int8 = false};
const LoadRules kRowwise = {.int8 = true};
const LoadRules kRotated = {.int8 = true, .rotation = 256};

// Under every kernel that can run here: each has a layout of packed weights of its own.
class TextInt8 : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string reason = why_not(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
    backend_ = make_cpu_backend({.threads = 2, .force_kernel = GetParam()});
  }
  UnsetVector<float> features(const LoadRules& rules, Residency where = Residency::device) {
    return features_by(*backend_, path_, SmallTower::kTaps, SmallTower::tokens(), rules, where);
  }
  TokenCosines cosines(const LoadRules& rules) {
    return cosines_of(features(kFloating), features(rules), SmallTower::tokens().size());
  }

  TemporaryFolder folder_;
  std::string path_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(TextInt8, FeaturesOfOrdinaryWeightsStayClose) {
  path_ = write_tower(folder_, 1);
  for (const LoadRules& rules : {kRowwise, kRotated}) {
    const TokenCosines apart = cosines(rules);
    EXPECT_GE(apart.worst, kLeastCosine);
    EXPECT_LT(apart.mean, 1 - 1e-7) << "nothing was quantized";
  }
}

// What towers are like: a few channels that are far larger than the others.
TEST_P(TextInt8, RotationTakesCareOfLargeChannels) {
  path_ = write_tower(folder_, 20);
  const TokenCosines rowwise = cosines(kRowwise), rotated = cosines(kRotated);
  EXPECT_LT(rowwise.mean, kLeastCosine);
  EXPECT_GE(rotated.worst, kLeastCosine);
  EXPECT_LT(1 - rotated.mean, 0.2 * (1 - rowwise.mean));
}

TEST_P(TextInt8, IsOneComputationWhereverItsWeightsWait) {
  path_ = write_tower(folder_, 20);
  const UnsetVector<float> resident = features(kRotated);
  EXPECT_EQ(features(kRotated, Residency::host), resident);
  EXPECT_EQ(features(kRotated, Residency::streamed), resident);
}

TEST_P(TextInt8, TakesTheMemoryThatThePlanCounts) {
  path_ = write_tower(folder_, 1);
  qwen3::TextEncoder encoder(path_, SmallTower::kTaps);
  const uint64_t before = backend_->memory().used;
  engine::PartStore store(encoder, nn::Context{*backend_, DType::bf16}, Residency::device);
  store.rules() = kRotated;
  store.load();
  const auto bytes = [&](bool int8) {
    return static_cast<double>(models::weight_bytes(encoder, {.int8 = int8}, backend_.get()).all);
  };
  const double counted = bytes(true);
  const auto taken = static_cast<double>(backend_->memory().used - before);
  EXPECT_NEAR(taken / counted, 1, 0.001) << "buffers are rounded up to whole cache lines";
  EXPECT_LT(counted, 0.65 * bytes(false));
}

INSTANTIATE_TEST_SUITE_P(Kernels, TextInt8, testing::ValuesIn(all_kernel_names()), print_name);

// --- the small model's own tower ---

// Its file holds INT8 codes by rows. What it was before they were made is gone; the same numbers in
// bf16 are a trained tower that has to be quantized.
class WithoutCodes : public nn::WeightVisitor {
 public:
  explicit WithoutCodes(const weights::WeightSource& source) : source_(source) {}

  void linear(nn::Linear&, const nn::LinearSpec& spec) override {
    for (const auto& part : spec.layouts.front()) add(part.name, part.rows, spec.k);
  }
  void conv(nn::Conv&, const nn::ConvSpec&) override {}
  void vector(nn::Vector&, const std::string& name, int64_t length) override {
    std::vector<float> values(static_cast<size_t>(length));
    source_.read_vector(name, {length}, values.data());
    tensors_.push_back(written(name, {length}, values));
  }
  void table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) override {
    add(name.substr(0, name.rfind(".weight")), rows, columns);
  }

  const std::vector<WrittenTensor>& tensors() const { return tensors_; }

 private:
  void add(const std::string& module, int64_t rows, int64_t k) {
    const auto weight = source_.weight(module, rows, k);
    std::vector<bf16_t> values(static_cast<size_t>(rows * k));
    for (int64_t i = 0; i < rows; ++i) {
      weight->read(i, DType::bf16, reinterpret_cast<std::byte*>(values.data() + i * k));
    }
    tensors_.push_back(written(module + ".weight", DType::bf16, {rows, k}, values));
  }

  const weights::WeightSource& source_;
  std::vector<WrittenTensor> tensors_;
};

class DemoTextInt8 : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  }

  static std::vector<int32_t> tokens_of(const std::string& name) {
    const tokenizer::Tokenizer tokenizer(OCTET_DEMO_DIR "/tokenizer/tokenizer.json");
    std::ifstream caption(fmt::format("{}/captions/{}.json", OCTET_DEMO_DIR, name));
    return qwen3::encode_caption(tokenizer, nlohmann::ordered_json::parse(caption).dump());
  }

  // Over three captions.
  TokenCosines cosines(const std::string& tower, const LoadRules& rules) {
    TokenCosines all;
    for (const char* name : {"000", "005", "010"}) {
      const auto tokens = tokens_of(name);
      const auto of = [&](const LoadRules& by) {
        return features_by(*backend_, tower, ideogram4::kTappedLayers, tokens, by);
      };
      const TokenCosines apart = cosines_of(of(kFloating), of(rules), tokens.size());
      all.mean += apart.mean / 3;
      all.worst = std::min(all.worst, apart.worst);
    }
    RecordProperty("mean_cosine", fmt::format("{:.6f}", all.mean));
    RecordProperty("worst_cosine", fmt::format("{:.6f}", all.worst));
    return all;
  }

  const std::string tower_ = OCTET_DEMO_DIR "/text_encoder";
  std::unique_ptr<Backend> backend_ = make_cpu_backend({.threads = 2});
};

TEST_F(DemoTextInt8, OfTheCodesInItsFile) {
  EXPECT_GE(cosines(tower_, kRotated).worst, kLeastCosine);
}

TEST_F(DemoTextInt8, OfWeightsThatAreQuantizedOnLoad) {
  const TemporaryFolder folder;
  qwen3::TextEncoder encoder(tower_, ideogram4::kTappedLayers);
  WithoutCodes copy(encoder.source());
  encoder.visit_all(copy);
  write_tensors(folder.file("model.safetensors"), copy.tensors());
  std::filesystem::copy(tower_ + "/config.json", folder.file("config.json"));
  EXPECT_GE(cosines(folder.path(), kRotated).worst, kLeastCosine);
}

}  // namespace
}  // namespace octet::test
