// A small job for tests of resumable files: tensors with known bytes, and the file they make.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/resumable_safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/temporary_folder.h"

namespace octet::test {

// A folder in memory where there is one. What a killed process wrote is in the page cache, so this
// shows the same as a disk, without the time that a disk takes for each of many syncs.
inline std::filesystem::path fast_place() {
  const bool usable = ::access("/dev/shm", W_OK | X_OK) == 0;
  return usable ? "/dev/shm" : std::filesystem::temp_directory_path();
}

struct ResumeJob {
  std::vector<TensorDeclaration> tensors;
  std::map<std::string, std::string> metadata;
  std::string key = "source 1, rowwise";

  static std::vector<std::byte> content(const TensorInfo& tensor) {
    std::vector<std::byte> bytes(tensor.bytes());
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] =
          static_cast<std::byte>(tensor.name.size() * 31 + tensor.begin * 3 + i * 7 + i / 256);
    }
    return bytes;
  }

  // The whole file as SafetensorsWriter makes it.
  std::string file(const TemporaryFolder& folder) const {
    SafetensorsWriter writer(folder.file("expected.safetensors"), tensors, metadata);
    for (const TensorInfo& tensor : writer.layout()) writer.write(tensor.name, content(tensor));
    writer.commit();
    const std::string bytes = folder.read("expected.safetensors");
    std::filesystem::remove(folder.file("expected.safetensors"));
    return bytes;
  }
};

inline void make(ResumableSafetensors& file, const TensorInfo& tensor) {
  file.write(tensor.name, 0, ResumeJob::content(tensor));
  file.finish(tensor.name);
}

inline void make_all(ResumableSafetensors& file) {
  for (const TensorInfo& tensor : file.layout()) {
    if (!file.is_finished(tensor.name)) make(file, tensor);
  }
}

// One file in a folder of its own, and its leftovers.
class ResumableTest : public testing::Test {
 protected:
  ResumableTest() {
    job_.tensors = {{"a", DType::i8, {100, 50}},
                    {"b", DType::f32, {70}},
                    {"none", DType::i8, {0, 4}},
                    {"big", DType::bf16, {700, 1000}},
                    {"tail\n", DType::u8, {3}}};
    job_.metadata = {{"format", "pt"}};
    expected_ = job_.file(folder_);
  }

  std::unique_ptr<ResumableSafetensors> open(ResumeOptions options = {}) const {
    return std::make_unique<ResumableSafetensors>(path_, job_.tensors, job_.metadata, job_.key,
                                                  options);
  }

  // Leaves a part in which `count` tensors are finished.
  void interrupt_after(size_t count) const {
    const auto file = open();
    for (size_t i = 0; i < count; ++i) make(*file, file->layout()[i]);
  }

  bool exists(const std::string& suffix) const { return std::filesystem::exists(path_ + suffix); }
  std::string part() const { return folder_.read("a.safetensors.part"); }
  std::string journal() const { return folder_.read("a.safetensors.part.journal"); }
  void set_part(std::string_view bytes) const { folder_.write("a.safetensors.part", bytes); }
  void set_journal(std::string_view text) const {
    folder_.write("a.safetensors.part.journal", text);
  }

  void expect_fresh_and_complete() const {
    const auto file = open();
    EXPECT_FALSE(file->resumed());
    EXPECT_EQ(file->finished(), 0u);
    complete(*file);
  }

  void complete(ResumableSafetensors& file) const {
    make_all(file);
    file.commit();
    EXPECT_TRUE(folder_.read("a.safetensors") == expected_);
    EXPECT_EQ(folder_.entries(), 1u);
  }

  TemporaryFolder folder_{fast_place()};
  std::string path_ = folder_.file("a.safetensors");
  ResumeJob job_;
  std::string expected_;
};

}  // namespace octet::test
