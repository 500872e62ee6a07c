#include "formats/safetensors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "formats/broken_files.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "formats/tensor_view.h"

namespace octet::test {
namespace {

TEST(Safetensors, ReadsNamesTypesShapesMetadataAndBytes) {
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write("a.safetensors", sound_file()));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "layer.weight");
  EXPECT_EQ(file.info("layer.bias").dtype, DType::bf16);
  EXPECT_EQ(file.info("layer.weight").shape, (FileShape{2, 2}));
  EXPECT_EQ(file.info("layer.weight").elements(), 4u);
  ASSERT_EQ(file.bytes("layer.bias").size(), 8u);
  EXPECT_EQ(file.bytes("layer.bias")[0], std::byte{16});
  EXPECT_EQ(file.find("absent"), nullptr);
  EXPECT_ERROR_WITH(file.info("ab\nsent"), R"(has no tensor "ab\u000asent")");
}

TEST(Safetensors, SortsTensorsByTheirData) {
  const std::string content =
      file_with_header(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},)"
                       R"("b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                       R"("c":{"dtype":"I8","shape":[0,7],"data_offsets":[3,3]}})",
                       5);
  const auto header = parse_safetensors(std::as_bytes(std::span(content)), "test");
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "b");
  EXPECT_EQ(header.tensors[1].name, "c");
  EXPECT_EQ(header.tensors[2].name, "a");
}

TEST(Safetensors, AFileWithoutTensorsIsFine) {
  for (const char* header : {"{}", "{}      ", R"({"__metadata__":{}})"}) {
    const std::string content = file_with_header(header, 0);
    EXPECT_TRUE(parse_safetensors(std::as_bytes(std::span(content)), "test").tensors.empty());
  }
}

// As bytes these lengths begin as a pickle and a zip archive do.
TEST(Safetensors, ALengthThatLooksLikeAnotherKindOfFileIsFine) {
  for (const size_t length : {size_t{0x0280}, size_t{0x04034b50}}) {
    const std::string content = file_with_header("{}" + std::string(length - 2, ' '), 0);
    EXPECT_NO_THROW(parse_safetensors(std::as_bytes(std::span(content)), "test"));
  }
}

TEST(Safetensors, ScalarsAndStrangeNamesAreFine) {
  const std::string content =
      file_with_header(R"({"":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                       R"("\u0000\n/..":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})",
                       5);
  const auto header = parse_safetensors(std::as_bytes(std::span(content)), "test");
  EXPECT_EQ(header.tensors[0].elements(), 1u);
  EXPECT_EQ(header.tensors[1].name.size(), 5u);
}

TEST(Safetensors, ViewsAreDenseAndDemandAlignedData) {
  const TemporaryFolder folder;
  std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  while ((8 + header.size()) % 4 != 0) header += ' ';
  const SafetensorsFile aligned(folder.write("a.safetensors", file_with_header(header, 24)));
  const ConstTensorView view = view_of(aligned, "w");
  EXPECT_EQ(view.dtype, DType::f32);
  EXPECT_EQ(view.shape, (Shape{2, 3}));
  EXPECT_TRUE(view.is_dense());
  EXPECT_EQ(view.data, aligned.bytes("w").data());

  header += ' ';
  const SafetensorsFile shifted(folder.write("b.safetensors", file_with_header(header, 24)));
  EXPECT_EQ(shifted.bytes("w").size(), 24u);
  EXPECT_ERROR_WITH(view_of(shifted, "w"), "not aligned to 4 bytes");
}

TEST(Safetensors, ARankAboveTheSupportedOneIsRefusedByViewAlone) {
  const TemporaryFolder folder;
  const std::string content = file_with_header(
      R"({"deep":{"dtype":"U8","shape":[1,1,1,1,1,1,2],"data_offsets":[0,2]}})", 2);
  const SafetensorsFile file(folder.write("a.safetensors", content));
  EXPECT_EQ(file.bytes("deep").size(), 2u);
  EXPECT_ERROR_WITH(view_of(file, "deep"), "rank is 7");
}

TEST(Safetensors, AnObjectThatMovedStillFindsItsTensors) {
  const TemporaryFolder folder;
  SafetensorsFile first(folder.write("a.safetensors", sound_file()));
  const SafetensorsFile second(std::move(first));
  EXPECT_EQ(second.bytes("layer.bias")[7], std::byte{23});
}

// 12 GB, nearly all of it a hole in the file system, with a tensor at either end.
TEST(Safetensors, FilesBeyondTenGigabytesAreReadAtBothEnds) {
  const TemporaryFolder folder;
  const uint64_t middle = 12'000'000'000;
  const std::string header = R"({"first":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("huge":{"dtype":"BF16","shape":[3000000000,2],)"
                             R"("data_offsets":[4,12000000004]},)"
                             R"("last":{"dtype":"U8","shape":[4],)"
                             R"("data_offsets":[12000000004,12000000008]}})";
  const std::string path = folder.write("big.safetensors", file_with_header(header, 4));
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const off_t end = static_cast<off_t>(8 + header.size() + 4 + middle);
  const bool written = ::pwrite(fd, "tail", 4, end) == 4;
  ::close(fd);
  if (!written) GTEST_SKIP() << "skipped, because this file system takes no sparse 12 GB file";
  const SafetensorsFile file(path);
  EXPECT_EQ(file.info("huge").bytes(), middle);
  EXPECT_EQ(file.bytes("first")[3], std::byte{3});
  EXPECT_EQ(std::memcmp(file.bytes("last").data(), "tail", 4), 0);
  EXPECT_EQ(file.bytes("huge").back(), std::byte{0});
}

}  // namespace
}  // namespace octet::test
