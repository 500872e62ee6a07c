// Metadata of a file changes, and nothing else does.
#include "formats/safetensors_metadata.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "formats/error_message.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/temporary_folder.h"
#include "formats/tensor_digest.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

class SafetensorsMetadata : public testing::Test {
 protected:
  SafetensorsMetadata() : path_(folder_.file("m.safetensors")) {
    SafetensorsWriter writer(path_,
                             {{"b", DType::f32, {2, 3}},
                              {"none", DType::f32, {0, 4}},
                              {"a", DType::i8, {5}},
                              {"c", DType::bf16, {3}}},
                             {{"format", "pt"}});
    for (const TensorInfo& info : writer.layout()) {
      std::vector<std::byte> bytes;
      for (uint64_t i = 0; i < info.bytes(); ++i) {
        bytes.push_back(static_cast<std::byte>(17 * i + info.name.front()));
      }
      writer.write(info.name, bytes);
    }
    writer.commit();
  }

  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string digest() const {
    ThreadPool pool(2);
    return tensor_digest(SafetensorsFile(path_), pool);
  }

  TemporaryFolder folder_;
  std::string path_;
};

std::vector<std::byte> copy_of(const SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.bytes(name);
  return {bytes.begin(), bytes.end()};
}

TEST_F(SafetensorsMetadata, TensorsAreTheSameToTheBit) {
  const std::string before = digest();
  const SafetensorsFile old(path_);
  for (const std::string& value :
       {std::string("one"), std::string(5000, 'x'), std::string("ü\"\n")}) {
    set_safetensors_metadata(path_, "stamp", value);
    const SafetensorsFile file(path_);
    EXPECT_EQ(file.metadata().at("stamp"), value);
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_EQ(file.metadata().size(), 2u);
    ASSERT_EQ(file.tensors().size(), old.tensors().size());
    for (const TensorInfo& info : old.tensors()) {
      EXPECT_EQ(file.info(info.name).shape, info.shape);
      EXPECT_EQ(file.info(info.name).dtype, info.dtype);
      EXPECT_EQ(copy_of(file, info.name), copy_of(old, info.name));
    }
    EXPECT_EQ(digest(), before);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(SafetensorsMetadata, TheDigestSeesEveryByteNameAndShape) {
  const std::string before = digest();
  std::string changed = content();
  changed.back() = static_cast<char>(changed.back() ^ 1);
  folder_.write("m.safetensors", changed);
  EXPECT_NE(digest(), before);
  changed.back() = static_cast<char>(changed.back() ^ 1);
  changed.replace(changed.find("[2,3]"), 5, "[3,2]");
  folder_.write("m.safetensors", changed);
  EXPECT_NE(digest(), before);
  changed.replace(changed.find("[3,2]"), 5, "[2,3]");
  folder_.write("m.safetensors", changed);
  EXPECT_EQ(digest(), before);
  changed.replace(changed.find("\"c\""), 3, "\"d\"");
  folder_.write("m.safetensors", changed);
  EXPECT_NE(digest(), before);
}

TEST_F(SafetensorsMetadata, FilesThatTakeNone) {
  const std::string before = content();
  fs::create_symlink(path_, folder_.file("link.safetensors"));
  EXPECT_ERROR_WITH(set_safetensors_metadata(folder_.file("link.safetensors"), "k", "v"),
                    "is a symbolic link");
  EXPECT_ERROR_WITH(set_safetensors_metadata(folder_.file("m.gguf"), "k", "v"),
                    "is not a safetensors file");
  EXPECT_ERROR_WITH(set_safetensors_metadata(path_, "k", "\xff"), "not UTF-8");
  folder_.write("bad.safetensors", "no header");
  EXPECT_ERROR_WITH(set_safetensors_metadata(folder_.file("bad.safetensors"), "k", "v"),
                    "bad.safetensors");
  EXPECT_EQ(content(), before);
}

TEST_F(SafetensorsMetadata, FileDigests) {
  folder_.write("abc", "abc");
  EXPECT_EQ(file_digest(folder_.file("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace octet::test
