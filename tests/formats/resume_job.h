// A small job for tests of resumable files: tensors with known bytes, and the file they make.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
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

}  // namespace octet::test
