// Checkpoints of one file and of several, and their summary.
#include "formats/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/broken_files.h"
#include "formats/error_message.h"
#include "formats/safetensors_writer.h"
#include "formats/temporary_folder.h"
#include "octet/inspect.h"

namespace octet::test {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

// A file with the given tensors, each of 4 bytes of which the first is `mark`.
std::string write_shard(const TemporaryFolder& folder, const std::string& name,
                        const std::vector<std::string>& tensors, int mark,
                        const std::map<std::string, std::string>& metadata = {}) {
  std::vector<TensorDeclaration> declared;
  for (const std::string& tensor : tensors) declared.push_back({tensor, DType::f32, {1}});
  SafetensorsWriter writer(folder.file(name), declared, metadata);
  const std::vector<std::byte> bytes(4, static_cast<std::byte>(mark));
  for (const TensorInfo& info : writer.layout()) writer.write(info.name, bytes);
  writer.commit();
  return folder.file(name);
}

class Sharded : public ::testing::Test {
 protected:
  Sharded() {
    write_shard(folder_, "model-1.safetensors", {"a", "b"}, 1, {{"format", "pt"}, {"shard", "1"}});
    write_shard(folder_, "model-2.safetensors", {"c"}, 2, {{"shard", "2"}, {"extra", "x"}});
  }

  std::string write_index(const std::string& weight_map) const {
    return folder_.write(
        kIndex, R"({"metadata":{"total_size":12,"note":"hi"},"weight_map":)" + weight_map + "}");
  }

  TemporaryFolder folder_;
};

constexpr const char* kWeightMap =
    R"({"a":"model-1.safetensors","b":"model-1.safetensors","c":"model-2.safetensors"})";

TEST_F(Sharded, OpensThroughTheIndexAndThroughTheFolder) {
  const std::string index = write_index(kWeightMap);
  for (const std::string& path : {index, folder_.path()}) {
    const Checkpoint checkpoint(path);
    EXPECT_EQ(checkpoint.path(), index);
    EXPECT_EQ(checkpoint.files().size(), 2u);
    EXPECT_EQ(checkpoint.tensors().size(), 3u);
    EXPECT_EQ(checkpoint.bytes("b")[0], std::byte{1});
    EXPECT_EQ(checkpoint.bytes("c")[0], std::byte{2});
    EXPECT_EQ(checkpoint.find("d"), nullptr);
    EXPECT_ERROR_WITH(checkpoint.bytes("d"), "no tensor \"d\"");
  }
}

TEST_F(Sharded, MetadataOfIndexAndShardsIsJoinedTheFirstCounts) {
  const Checkpoint checkpoint(write_index(kWeightMap));
  const std::map<std::string, std::string> expected = {
      {"total_size", "12"}, {"note", "hi"}, {"format", "pt"}, {"shard", "1"}, {"extra", "x"}};
  EXPECT_EQ(checkpoint.metadata(), expected);
}

TEST_F(Sharded, StaysUsableAfterAMove) {
  Checkpoint first(write_index(kWeightMap));
  const Checkpoint second(std::move(first));
  EXPECT_EQ(second.bytes("c")[0], std::byte{2});
}

TEST_F(Sharded, ReleasedTensorsReadTheSame) {
  const Checkpoint checkpoint(write_index(kWeightMap));
  const std::vector<std::byte> before(checkpoint.bytes("c").begin(), checkpoint.bytes("c").end());
  checkpoint.file_of("c").release(checkpoint.bytes("c"));
  EXPECT_TRUE(std::ranges::equal(checkpoint.bytes("c"), before));
  EXPECT_ERROR_WITH(checkpoint.file_of("absent"), "has no tensor \"absent\"");
}

TEST_F(Sharded, ATensorThatItsShardDoesNotHoldIsNamed) {
  const std::string index = write_index(
      R"({"a":"model-1.safetensors","b":"model-1.safetensors","c":"model-1.safetensors"})");
  const std::string message = error_of([&] { Checkpoint checkpoint(index); });
  EXPECT_TRUE(contains(message, index)) << message;
  EXPECT_TRUE(contains(message, "tensor \"c\"")) << message;
  EXPECT_TRUE(contains(message, "model-1.safetensors")) << message;
}

TEST_F(Sharded, TensorsOutsideOfTheIndexAreListed) {
  const std::string index = write_index(R"({"c":"model-2.safetensors","b":"model-1.safetensors"})");
  EXPECT_ERROR_WITH(Checkpoint(index), "which holds them: \"a\"");
}

TEST_F(Sharded, ABrokenShardIsNamed) {
  const std::string index = write_index(kWeightMap);
  const std::string shard = folder_.read("model-2.safetensors");
  folder_.write("model-2.safetensors", shard.substr(0, shard.size() - 1));
  EXPECT_ERROR_WITH(Checkpoint(index), "model-2.safetensors: tensor \"c\"");
}

TEST_F(Sharded, AFolderWithSeveralFilesAndNoIndexListsThem) {
  EXPECT_ERROR_WITH(Checkpoint(folder_.path()), "\"model-1.safetensors\", \"model-2.safetensors\"");
  folder_.write(kIndex, "{}");
  folder_.write("other.safetensors.index.json", "{}");
  EXPECT_ERROR_WITH(Checkpoint(folder_.path()), "2 checkpoints, expected one");
}

TEST(Checkpoint, OpensTheOnlyFileOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_ERROR_WITH(Checkpoint(folder.path()), "neither");
  folder.write("config.json", "{}");
  const std::string path = folder.write("only.safetensors", sound_file());
  EXPECT_EQ(Checkpoint(folder.path()).path(), path);
  EXPECT_ERROR_WITH(Checkpoint(folder.file("absent")), "absent: cannot be opened");
}

TEST(Inspect, SummarizesOneFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.safetensors", sound_file());
  const CheckpointSummary summary = inspect_checkpoint(path);
  EXPECT_EQ(summary.path, path);
  EXPECT_EQ(summary.files, std::vector<std::string>{"a.safetensors"});
  EXPECT_EQ(summary.metadata.at("format"), "pt");
  ASSERT_EQ(summary.tensors.size(), 2u);
  EXPECT_EQ(summary.tensors[0].name, "layer.bias");
  EXPECT_EQ(summary.tensors[0].dtype, "BF16");
  EXPECT_EQ(summary.tensors[1].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(summary.tensors[1].bytes, 16u);
  EXPECT_EQ(summary.tensors[1].file, "a.safetensors");
  EXPECT_EQ(summary.total_bytes, 24u);
  EXPECT_EQ(summary.parameters, 8u);
  EXPECT_EQ(summary.dtypes.at("F32").bytes, 16u);
  EXPECT_EQ(summary.dtypes.at("BF16").tensors, 1u);
}

TEST_F(Sharded, IsSummarizedWithTheFileOfEachTensor) {
  write_index(kWeightMap);
  const CheckpointSummary summary = inspect_checkpoint(folder_.path());
  EXPECT_EQ(summary.files.size(), 2u);
  ASSERT_EQ(summary.tensors.size(), 3u);
  EXPECT_EQ(summary.tensors[2].file, "model-2.safetensors");
  EXPECT_EQ(summary.total_bytes, 12u);
}

}  // namespace
}  // namespace octet::test
