// A text tower with files reads a prompt's rows of its embedding from them: the bits of a table in
// the device's memory, which it never takes.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "cpu/cpu_backend.h"
#include "formats/gguf_bytes.h"
#include "models/footprint.h"
#include "models/small_tower.h"
#include "support.h"
#include "weights/loaded_linear.h"

namespace octet::test {
namespace {

constexpr int64_t kRows = SmallTower::kVocabulary;

class EmbeddingRows : public testing::Test {
 protected:
  using Encoder = qwen3::TextEncoder;

  EmbeddingRows() : path_(write_tower(tower_, 1)), backend_(make_cpu_backend({.threads = 2})) {}

  // The tower of the files with another embedding before its own.
  Encoder with_embedding(const std::string& file) {
    Encoder encoder(path_, SmallTower::kTaps);
    weights::WeightSource source(std::make_shared<const Checkpoint>(file), "");
    const auto& tower = encoder.source().layers().front();
    source.add_base(tower.checkpoint, tower.prefix);
    encoder.source() = source;
    return encoder;
  }
  // Loads all from `source`; its fingerprint.
  std::string load(Encoder& encoder, const weights::WeightSource& source, DType dtype) {
    weights::Loader loader(source, *backend_, {.dtype = dtype, .int8 = false});
    encoder.visit_all(loader);
    return loader.fingerprint().to_string();
  }
  void expect_same_bits(const std::string& file) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      SCOPED_TRACE(name_of(dtype));
      Encoder by_rows = with_embedding(file);
      Encoder in_memory(SmallTower::config(), SmallTower::kTaps);
      nn::Context ctx{*backend_, dtype};
      EXPECT_EQ(load(by_rows, by_rows.source(), dtype), load(in_memory, by_rows.source(), dtype));
      const auto features = by_rows.encode(ctx, SmallTower::tokens());
      EXPECT_EQ(features, in_memory.encode(ctx, SmallTower::tokens()));
      EXPECT_FALSE(features.empty());
    }
  }

  TemporaryFolder tower_, folder_;
  std::string path_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(EmbeddingRows, HaveTheBitsOfATable) {
  std::mt19937 random(41);
  for (const StoredCase& stored : kStoredCases) {
    SCOPED_TRACE(stored.name);
    const int64_t hidden = SmallTower::config().hidden;
    expect_same_bits(
        write_checkpoint(folder_, stored_tensors(stored, "embed_tokens", kRows, hidden, random))
            .path());
  }
}

TEST_F(EmbeddingRows, HaveTheBitsOfATableOfBlocks) {
  std::mt19937 random(42);
  constexpr int64_t kBlock = 32;
  const int64_t hidden = SmallTower::config().hidden;
  GgufParts parts;
  parts.pairs = {gguf_text_pair("general.architecture", "qwen3vl")};
  parts.tensors = {
      {"embed_tokens.weight", {static_cast<uint64_t>(hidden), static_cast<uint64_t>(kRows)}, 8}};
  for (int64_t block = 0; block < kRows * hidden / kBlock; ++block) {
    parts.data += raw(static_cast<uint16_t>(0x2000 + random() % 0x400));  // about 0.01, in F16
    for (int64_t i = 0; i < kBlock; ++i) parts.data += raw(static_cast<int8_t>(random()));
  }
  expect_same_bits(folder_.write("embedding.gguf", parts.bytes()));
}

TEST_F(EmbeddingRows, TakeNoMemoryOfTheDevice) {
  Encoder encoder(path_, SmallTower::kTaps);
  weights::Loader loader(encoder.source(), *backend_, {.int8 = false});
  encoder.visit(0, loader);
  EXPECT_EQ(backend_->memory().used, 0u);
  EXPECT_EQ(backend_->memory().peak, 0u);
  const auto counted = models::weight_bytes(encoder, {.int8 = false}, backend_.get());
  encoder.visit(1, loader);
  EXPECT_EQ(counted.largest_unit, backend_->memory().used);

  Encoder in_memory(SmallTower::config(), SmallTower::kTaps);
  EXPECT_EQ(models::weight_bytes(in_memory, {.int8 = false}, backend_.get()).all,
            counted.all + kRows * SmallTower::config().hidden * sizeof(bf16_t));
}

// Also in rows that no prompt has, as in any other weight, while the fingerprint is made; and in
// those of a prompt if it never is.
TEST_F(EmbeddingRows, TellDamage) {
  const int64_t hidden = SmallTower::config().hidden;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    std::vector<std::byte> bytes(static_cast<size_t>(kRows * hidden * bits_of(dtype) / 8));
    weights::store_f32(std::numeric_limits<float>::quiet_NaN(), dtype, bytes.data(),
                       kRows * hidden - 1);
    Encoder encoder = with_embedding(
        write_checkpoint(folder_, {{"embed_tokens.weight", dtype, {kRows, hidden}, bytes}}).path());
    const std::string told = "\"embed_tokens.weight\" holds a NaN or an infinity in row 299";
    EXPECT_ERROR_WITH(load(encoder, encoder.source(), DType::bf16), told);
    weights::Loader loader(encoder.source(), *backend_, {.int8 = false, .fingerprint = false});
    encoder.visit_all(loader);
    nn::Context ctx{*backend_};
    encoder.encode(ctx, {0, 298});
    EXPECT_ERROR_WITH(encoder.encode(ctx, {0, 299}), told);
  }
}

}  // namespace
}  // namespace octet::test
