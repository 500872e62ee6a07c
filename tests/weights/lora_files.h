// What tests of LoRAs share: a small model's linears, files that change them, and what was changed.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "weights/lora/lora.h"
#include "weights/written_tensors.h"

namespace octet::test {

using weights::Lora;
using weights::StoredWeight;

inline constexpr int64_t kK = 3;

// Of a model with two networks.
inline constexpr std::string_view kFirstAliases[] = {"cond", "conditional_transformer"};
inline constexpr std::string_view kSecondAliases[] = {"uncond", "unconditional_transformer"};
inline constexpr weights::NetworkNames kNetworks[] = {{"conditional", kFirstAliases},
                                                      {"unconditional", kSecondAliases}};

// Rows of `fused` are those of a, b and c; `o` has another name; `in` has one only.
inline std::vector<nn::LinearSpec> model() {
  return {{.layer = "fused",
           .k = kK,
           .layouts = {{{"layers.0.at.fused", 4}},
                       {{"layers.0.at.a", 2}, {"layers.0.at.b", 1}, {"layers.0.at.c", 1}}}},
          {.layer = "o", .k = kK, .layouts = {{{"layers.0.at.o", 2}}, {{"layers.0.at.to_o.0", 2}}}},
          {.layer = "in", .k = kK, .layouts = {{{"mlp_in", 2}}}},
          {.layer = "alike", .k = kK, .layouts = {{{"mlp.alike", 2}}}},
          {.layer = "alike", .k = kK, .layouts = {{{"mlp_alike", 2}}}}};
}

// The second has no mlp.alike, and its mlp_alike is larger.
inline std::vector<std::vector<nn::LinearSpec>> both_networks() {
  const std::vector<nn::LinearSpec> first = model();
  std::vector<nn::LinearSpec> second = {first[0], first[1], first[2], first[4]};
  second.back().layouts = {{{"mlp_alike", 5}}};
  return {first, second};
}

// Any values, which a test makes a stored weight of.
class GivenWeight : public StoredWeight {
 public:
  GivenWeight(int64_t rows, std::vector<float> values, weights::StoredTransform transform = {},
              bool int8 = false)
      : StoredWeight("base", "m", rows, static_cast<int64_t>(values.size()) / rows),
        values_(std::move(values)) {
    transform_ = std::move(transform);
    dtype_ = int8 ? DType::i8 : DType::f32;
    format_ = int8 ? "INT8" : "F32";
  }
  void read_stored(int64_t row, std::byte* into) const override {
    for (int64_t j = 0; j < k(); ++j) {
      const float value = values_[static_cast<size_t>(row * k() + j)];
      if (is_int8()) {
        into[j] = static_cast<std::byte>(static_cast<int8_t>(value));
      } else {
        std::memcpy(into + 4 * j, &value, 4);
      }
    }
  }
  float scale(int64_t row) const override { return is_int8() ? 0.5f + static_cast<float>(row) : 1; }

 private:
  std::vector<float> values_;
};

inline std::vector<float> values_of(const StoredWeight& weight) {
  std::vector<float> values(static_cast<size_t>(weight.rows() * weight.k()));
  for (int64_t row = 0; row < weight.rows(); ++row) {
    weight.read(row, values.data() + row * weight.k());
  }
  return values;
}

class LoraTest : public testing::Test {
 protected:
  std::shared_ptr<const Lora> lora(const std::vector<WrittenTensor>& tensors,
                                   octet::Lora request = {},
                                   const std::map<std::string, std::string>& metadata = {}) {
    request.file = folder_.file(std::to_string(count_++) + ".safetensors");
    write_tensors(request.file, tensors, metadata);
    return std::make_shared<Lora>(request, kNetworks, both_networks());
  }

  // What is added to zeros of this module.
  std::vector<float> change(const std::shared_ptr<const Lora>& from, const std::string& module,
                            int64_t rows, size_t network = 0) {
    auto base = std::make_unique<GivenWeight>(rows, std::vector<float>(rows * kK));
    return values_of(*weights::merge_loras({from}, network)(std::move(base), module));
  }

  std::string refusal(const std::vector<WrittenTensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {}) {
    return error_of([&] { lora(tensors, {}, metadata); });
  }

  TemporaryFolder folder_;
  int count_ = 0;
};

// A = [1 2 3], B = [10; 20]: B A, by hand.
inline const std::vector<float> kDown = {1, 2, 3}, kUp = {10, 20};
inline const std::vector<float> kProduct = {10, 20, 30, 20, 40, 60};
inline const std::vector<float> kNothing(6);

inline std::vector<WrittenTensor> pair(const std::string& module,
                                       const std::string& down = "lora_A",
                                       const std::string& up = "lora_B") {
  return {written(module + "." + down + ".weight", {1, 3}, kDown),
          written(module + "." + up + ".weight", {2, 1}, kUp)};
}

inline std::vector<float> times(float factor, std::vector<float> values) {
  for (float& value : values) value *= factor;
  return values;
}

}  // namespace octet::test
