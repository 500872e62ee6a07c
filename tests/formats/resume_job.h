// A small job for tests of resumable files: tensors with known bytes, and the file they make.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/resumable_safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/temporary_folder.h"

namespace octet::test {

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
