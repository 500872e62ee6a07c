// A file of random weights, with the numbers that RandomWeights makes in a backend's memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/safetensors_writer.h"
#include "weights/random_weights.h"
#include "weights/stored_weight.h"

namespace octet::test {

// The tensors that a model lists.
class TensorList : public nn::WeightVisitor {
 public:
  void linear(nn::Linear&, const nn::LinearSpec& spec) override {
    for (const auto& part : spec.layouts.back()) {
      tensors.push_back({part.name + ".weight", {part.rows, spec.k}, spec.k});
    }
    if (!spec.bias) return;
    for (const auto& part : spec.layouts.back())
      tensors.push_back({part.name + ".bias", {part.rows}});
  }
  void conv(nn::Conv&, const nn::ConvSpec& spec) override {
    tensors.push_back({spec.name + ".weight",
                       {spec.out, spec.in, spec.kernel, spec.kernel},
                       spec.in * spec.kernel * spec.kernel});
    tensors.push_back({spec.name + ".bias", {spec.out}, 0});
  }
  void vector(nn::Vector&, const std::string& name, int64_t length) override {
    tensors.push_back({name, {length}, 0});
  }
  void table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) override {
    tensors.push_back({name, {rows, columns}, 1});
  }

  std::vector<weights::RandomTensor> tensors;
};

// A safetensors file of all tensors that a model lists, which appears whole or not at all. dtype:
// F32 or BF16.
inline void write_random_checkpoint(const std::string& path,
                                    const std::function<void(nn::WeightVisitor&)>& visit,
                                    uint64_t seed, DType dtype) {
  check(dtype == DType::f32 || dtype == DType::bf16, "the type is {}, expected F32 or BF16",
        name_of(dtype));
  TensorList list;
  visit(list);
  std::vector<TensorDeclaration> declared;
  for (const weights::RandomTensor& tensor : list.tensors) {
    declared.push_back({tensor.name, dtype, tensor.shape});
  }
  // Readers of other projects ask for this entry. All tensors have one type, so that the file keeps
  // their order.
  SafetensorsWriter writer(path, declared, {{"format", "pt"}});
  for (const weights::RandomTensor& tensor : list.tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bits_of(dtype) / 8));
    weights::fill_random(seed, tensor, weights::default_spread(tensor), 0, values);
    weights::store_f32(values, dtype, bytes.data());
    writer.write(tensor.name, bytes);
  }
  writer.commit();
}

}  // namespace octet::test
