// Every broken file is refused with one sentence that names the file, the tensor and the fault.
#include "formats/broken_files.h"

#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "formats/error_message.h"
#include "formats/safetensors.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

void expect_useful(const std::string& message, const std::string& path, const BrokenFile& broken) {
  SCOPED_TRACE(broken.label + ": " + message);
  EXPECT_TRUE(contains(message, path));
  EXPECT_TRUE(contains(message, broken.tensor));
  EXPECT_TRUE(contains(message, broken.fault));
  EXPECT_FALSE(contains(message, "\n"));
  EXPECT_LT(message.size(), 700u);
}

TEST(BrokenFiles, SafetensorsAreRefusedWithAUsefulSentence) {
  const TemporaryFolder folder;
  for (const BrokenFile& broken : broken_safetensors()) {
    const std::string path = folder.write(broken.label + ".safetensors", broken.content);
    expect_useful(error_of([&] { SafetensorsFile file(path); }), path, broken);
  }
}

TEST(BrokenFiles, IndexesAreRefusedWithAUsefulSentence) {
  const TemporaryFolder folder;
  for (const BrokenFile& broken : broken_indexes()) {
    const std::string path = folder.write(broken.label + ".safetensors.index.json", broken.content);
    expect_useful(error_of([&] { Checkpoint checkpoint(path); }), path, broken);
  }
}

TEST(BrokenFiles, EveryTruncationIsRefused) {
  const std::string whole = sound_file();
  const auto bytes = std::as_bytes(std::span(whole));
  EXPECT_EQ(parse_safetensors(bytes, "whole").tensors.size(), 2u);
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string message =
        error_of([&] { parse_safetensors(bytes.first(length), "cut.safetensors"); });
    EXPECT_TRUE(contains(message, "cut.safetensors")) << length << ": " << message;
    EXPECT_FALSE(contains(message, "\n"));
  }
}

// Whatever one damaged byte does, the outcome is a valid header or an Error.
TEST(BrokenFiles, NoSingleDamagedByteEscapesTheValidator) {
  const std::string whole = sound_file();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned flip : {0x01u, 0x02u, 0x04u, 0x10u, 0x20u, 0x80u, 0xffu}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ flip);
      try {
        const auto header = parse_safetensors(std::as_bytes(std::span(damaged)), "damaged");
        uint64_t covered = 0;
        for (const TensorInfo& tensor : header.tensors) covered += tensor.bytes();
        EXPECT_EQ(header.data_begin + covered, damaged.size());
      } catch (const Error& error) {
        EXPECT_TRUE(contains(error.what(), "damaged"));
      }
    }
  }
}

TEST(BrokenFiles, AHeaderOfTooManyValuesIsRefusedBeforeItFillsTheMemory) {
  std::string header = R"({"w":[)";
  header.reserve(9'000'000);
  for (int i = 0; i < 4'000'100; ++i) header += "0,";
  header += "0]}";
  const std::string content = file_with_header(header, 0);
  EXPECT_ERROR_WITH(parse_safetensors(std::as_bytes(std::span(content)), "many"),
                    "more than 4000000 values");
}

TEST(BrokenFiles, WhatIsNotARegularFileIsRefused) {
  const TemporaryFolder folder;
  EXPECT_ERROR_WITH(SafetensorsFile(folder.file("absent.safetensors")), "absent.safetensors");
  EXPECT_ERROR_WITH(SafetensorsFile(folder.path()), "not a regular file");
  EXPECT_ERROR_WITH(SafetensorsFile("/dev/null"), "not a regular file");
}

}  // namespace
}  // namespace octet::test
