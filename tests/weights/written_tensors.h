// Tensors that a test writes into a safetensors file.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors_writer.h"

namespace octet::test {

struct WrittenTensor {
  std::string name;
  DType dtype;
  FileShape shape;
  std::vector<std::byte> bytes;
};

template <class T>
WrittenTensor written(std::string name, DType dtype, FileShape shape,
                      const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {std::move(name), dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

inline WrittenTensor written(std::string name, FileShape shape, const std::vector<float>& values) {
  return written(std::move(name), DType::f32, std::move(shape), values);
}

inline void write_tensors(const std::string& path, const std::vector<WrittenTensor>& tensors,
                          const std::map<std::string, std::string>& metadata = {}) {
  std::vector<TensorDeclaration> declarations;
  for (const auto& each : tensors) declarations.push_back({each.name, each.dtype, each.shape});
  SafetensorsWriter writer(path, declarations, metadata);
  for (const TensorInfo& info : writer.layout()) {
    for (const auto& each : tensors) {
      if (each.name == info.name) writer.write(each.name, each.bytes);
    }
  }
  writer.commit();
}

}  // namespace octet::test
