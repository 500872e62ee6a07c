// GGUF files: what a sound one holds, and that every broken one is refused with a sentence.
#include "formats/gguf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "formats/checkpoint.h"
#include "formats/error_message.h"
#include "formats/gguf_bytes.h"
#include "formats/temporary_folder.h"
#include "formats/tensor_view.h"
#include "octet/inspect.h"

namespace octet::test {
namespace {

TEST(Gguf, Reads) {
  const TemporaryFolder folder;
  for (const uint32_t version : {2u, 3u}) {
    GgufParts parts = sound_gguf();
    parts.version = version;
    const GgufFile file(folder.write("a.gguf", parts.bytes()));
    ASSERT_EQ(file.tensors().size(), 3u);
    EXPECT_EQ(file.info("f").shape, (FileShape{2, 3}));
    EXPECT_EQ(file.info("f").dtype, DType::f32);
    EXPECT_EQ(file.info("f").packing, "");
    EXPECT_EQ(view_of(file, "f").as<float>()[4], 4.0f);
    EXPECT_EQ(file.info("a.weight").shape, (FileShape{2, 64}));
    EXPECT_EQ(file.info("a.weight").packing, "Q8_0");
    EXPECT_EQ(file.bytes("a.weight").size(), 4 * 34u);
    EXPECT_ERROR_WITH(view_of(file, "a.weight"), "packed in blocks of Q8_0");
    EXPECT_EQ(file.info("h").dtype, DType::f16);
    EXPECT_EQ(file.metadata().at("general.architecture"), "ideogram4");
    EXPECT_EQ(file.metadata().at("general.file_type"), "7");
    EXPECT_EQ(file.metadata().at("list"), "an array of 2");
  }
}

TEST(Gguf, AnotherAlignment) {
  const TemporaryFolder folder;
  GgufParts parts;
  parts.alignment = 64;
  parts.pairs = {gguf_u32_pair("general.alignment", 64)};
  parts.tensors = {{"a", {2}, 0, 0}, {"b", {1}, 0, 64}};
  parts.data = raw(1.0f) + raw(2.0f) + std::string(56, '\0') + raw(3.0f);  // no padding at the end
  const GgufFile file(folder.write("a.gguf", parts.bytes()));
  EXPECT_EQ(view_of(file, "b").as<float>()[0], 3.0f);
}

TEST(Gguf, WithoutTensorsOrData) {
  const TemporaryFolder folder;
  EXPECT_TRUE(GgufFile(folder.write("a.gguf", GgufParts().bytes())).tensors().empty());
  const std::string unpadded = GgufParts().bytes().substr(0, 24);
  EXPECT_TRUE(GgufFile(folder.write("b.gguf", unpadded)).tensors().empty());
}

TEST(Gguf, BrokenFilesAreRefused) {
  const TemporaryFolder folder;
  std::set<std::string> labels;
  for (const BrokenGguf& broken : broken_ggufs()) {
    SCOPED_TRACE(broken.label);
    EXPECT_TRUE(labels.insert(broken.label).second);
    const std::string path = folder.write("a.gguf", broken.content);
    const std::string message = error_of([&] { GgufFile file(path); });
    EXPECT_TRUE(message.starts_with(path)) << message;
    EXPECT_TRUE(contains(message, broken.fault)) << message;
    EXPECT_FALSE(contains(message, "\n"));
  }
}

TEST(Gguf, EveryTruncationIsRefused) {
  const std::string sound = sound_gguf().bytes();
  // The last tensor's own padding may be missing.
  for (size_t length = 0; length < sound.size() - 24; ++length) {
    const auto bytes = std::as_bytes(std::span(sound.data(), length));
    EXPECT_FALSE(error_of([&] { parse_gguf(bytes, "cut"); }).empty()) << length;
  }
}

// A file of holes costs nothing to make, and says that it has as much as one likes.
class SparseGguf : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = uint64_t{1} << 32;

  // One pair whose value is an array that fills the file, or says so.
  std::string write(uint32_t type, uint64_t length) const {
    GgufParts parts;
    parts.pairs = {gguf_text("k") + raw<uint32_t>(9) + raw(type) + raw(length)};
    const std::string path = folder_.write("a.gguf", parts.bytes());
    std::filesystem::resize_file(path, kBytes);
    return path;
  }

  static int64_t page_faults() {
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
  }

  TemporaryFolder folder_;
};

TEST_F(SparseGguf, NumbersInArraysArePassedOver) {
  constexpr uint64_t kHeader = 4 + 4 + 8 + 8 + 8 + 1 + 4 + 4 + 8;
  const std::pair<uint32_t, uint64_t> cases[] = {{0, 1}, {1, 1}, {2, 2},  {3, 2},  {4, 4}, {5, 4},
                                                 {6, 4}, {7, 1}, {10, 8}, {11, 8}, {12, 8}};
  for (const auto& [type, size] : cases) {
    const uint64_t length = (kBytes - kHeader) / size;
    const std::string path = write(type, length);
    const int64_t before = page_faults();
    EXPECT_EQ(GgufFile(path).metadata().at("k"), fmt::format("an array of {}", length));
    // Its pages would be a million, sixteen at a time.
    EXPECT_LT(page_faults() - before, 5000) << type;
    EXPECT_ERROR_WITH(GgufFile(write(type, length + 1)), "more than the file can hold");
  }
}

TEST_F(SparseGguf, TextsAndArraysInArraysAreCounted) {
  EXPECT_ERROR_WITH(GgufFile(write(8, kBytes / 8 - 8)), "above the limit of 8000000");
  EXPECT_ERROR_WITH(GgufFile(write(9, kBytes / 16)), "above the limit of 8000000");
  EXPECT_ERROR_WITH(GgufFile(write(8, kBytes / 8)), "more than the file can hold");
  EXPECT_ERROR_WITH(GgufFile(write(13, 0)), "unknown type 13");
  // Together, too: 9 arrays of a million texts each, in an array.
  GgufParts parts;
  parts.pairs = {gguf_text("k") + raw<uint32_t>(9) + raw<uint32_t>(9) + raw<uint64_t>(9)};
  const std::string inner = raw<uint32_t>(8) + raw<uint64_t>(1'000'000);
  for (int i = 0; i < 9; ++i) parts.pairs[0] += inner + std::string(8'000'000, '\0');
  EXPECT_ERROR_WITH(GgufFile(folder_.write("a.gguf", parts.bytes())), "above the limit");
}

TEST_F(SparseGguf, TextsAreLimitedTogether) {
  constexpr uint64_t kLength = 16'000'000, kTexts = 5;  // each is as long as one may be
  std::string head = GgufParts().bytes().substr(0, 24);
  head.replace(16, 8, raw(kTexts));
  const std::string path = folder_.write("a.gguf", head);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  uint64_t at = head.size();
  for (uint64_t i = 0; i < kTexts; ++i) {
    const std::string begin = gguf_text(fmt::format("k{}", i)) + raw<uint32_t>(8) + raw(kLength);
    file.seekp(static_cast<std::streamoff>(at)) << begin;
    at += begin.size() + kLength;
  }
  file.close();
  std::filesystem::resize_file(path, at);
  EXPECT_ERROR_WITH(GgufFile(path), "more than 64000000 bytes");
}

TEST_F(SparseGguf, PairsAndTensorsAreCounted) {
  for (const size_t at : {size_t{8}, size_t{16}}) {
    std::string bytes = GgufParts().bytes();
    bytes.replace(at, 8, raw<uint64_t>(1'000'001));
    const std::string path = folder_.write("a.gguf", bytes);
    std::filesystem::resize_file(path, kBytes);
    EXPECT_ERROR_WITH(GgufFile(path), "above the limit of 1000000");
  }
}

TEST(Gguf, AsACheckpoint) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.gguf", sound_gguf().bytes());
  for (const std::string& opened : {path, folder.path()}) {
    const Checkpoint checkpoint(opened);
    EXPECT_EQ(checkpoint.path(), path);
    EXPECT_EQ(checkpoint.tensors().size(), 3u);
    EXPECT_EQ(checkpoint.info("a.weight").packing, "Q8_0");
  }
  const CheckpointSummary summary = inspect_checkpoint(path);
  EXPECT_EQ(summary.tensors[0].dtype, "Q8_0");
  EXPECT_EQ(summary.dtypes.at("Q8_0").bytes, 4 * 34u);
  EXPECT_EQ(summary.parameters, 6u + 128 + 4);
  folder.write("other.safetensors", "");
  EXPECT_ERROR_WITH(Checkpoint(folder.path()), "2 checkpoints, expected one");
}

}  // namespace
}  // namespace octet::test
