// Safetensors files of a few tensors, for tests of how checkpoints store weights.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/safetensors_writer.h"
#include "formats/temporary_folder.h"
#include "weights/stored_weight.h"

namespace octet::test {

struct Tensor {
  std::string name;
  DType dtype;
  FileShape shape;
  std::vector<std::byte> bytes;
};

template <class T>
Tensor tensor(std::string name, DType dtype, FileShape shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {std::move(name), dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

inline Tensor f32(std::string name, FileShape shape, const std::vector<float>& values) {
  return tensor(std::move(name), DType::f32, std::move(shape), values);
}

inline Tensor text_tensor(std::string name, std::string_view text) {
  return tensor(std::move(name), DType::u8, {static_cast<int64_t>(text.size())},
                std::vector<char>(text.begin(), text.end()));
}

using Metadata = std::map<std::string, std::string>;

inline Checkpoint write_checkpoint(const TemporaryFolder& folder,
                                   const std::vector<Tensor>& tensors,
                                   const Metadata& metadata = {}) {
  std::vector<TensorDeclaration> declarations;
  for (const Tensor& each : tensors) declarations.push_back({each.name, each.dtype, each.shape});
  SafetensorsWriter writer(folder.file("w.safetensors"), declarations, metadata);
  for (const TensorInfo& info : writer.layout()) {
    for (const Tensor& each : tensors) {
      if (each.name == info.name) writer.write(each.name, each.bytes);
    }
  }
  writer.commit();
  return Checkpoint(folder.file("w.safetensors"));
}

inline std::vector<float> row_of(const weights::StoredWeight& weight, int64_t row) {
  std::vector<float> values(static_cast<size_t>(weight.k()));
  weight.read(row, values.data());
  return values;
}

inline std::vector<std::string> names_used(const weights::StoredWeight& weight) {
  std::vector<std::string> names;
  for (const weights::UsedTensor& used : weight.tensors()) names.push_back(used.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace octet::test
