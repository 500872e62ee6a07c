// A checkpoint of one linear in each form that files have, and the linear as a Loader loads it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "nn/linear.h"
#include "support.h"
#include "weights/loader.h"
#include "weights/tensor_files.h"

namespace octet::test {

struct StoredCase {
  const char* name;
  DType dtype;     // of <module>.weight
  int64_t scales;  // of <module>.weight_scale: none, one, or one for each row (-1)
};
inline constexpr StoredCase kStoredCases[] = {
    {"INT8", DType::i8, -1},     {"INT8 with one scale", DType::i8, 1},
    {"FP8", DType::f8_e4m3, -1}, {"FP8 with one scale", DType::f8_e4m3, 1},
    {"F16", DType::f16, 0},      {"BF16", DType::bf16, 0},
    {"F32", DType::f32, 0}};

// Finite numbers of moderate size, as bytes.
inline std::vector<std::byte> stored_bytes(DType dtype, int64_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(count * bits_of(dtype) / 8));
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (int64_t i = 0; i < count; ++i) {
    if (bits_of(dtype) == 8) {
      bytes[static_cast<size_t>(i)] = static_cast<std::byte>(random() & 0xbf);  // no NaN in FP8
    } else {
      weights::store_f32(normal(random), dtype, bytes.data(), i);
    }
  }
  return bytes;
}

inline std::vector<Tensor> stored_tensors(const StoredCase& stored, const std::string& module,
                                          int64_t rows, int64_t k, std::mt19937& random) {
  std::vector<Tensor> tensors = {
      {module + ".weight", stored.dtype, {rows, k}, stored_bytes(stored.dtype, rows * k, random)}};
  if (stored.scales != 0) {
    const int64_t count = stored.scales < 0 ? rows : 1;
    tensors.push_back(
        f32(module + ".weight_scale", {count}, random_floats(count, random, -0.02f, 0.02f)));
  }
  if (stored.dtype == DType::i8) {
    tensors.push_back(text_tensor(module + ".comfy_quant", R"({"format": "int8_tensorwise"})"));
  }
  return tensors;
}

// A checkpoint with the modules "a" and "b" of one linear.
class LoadedLinear {
 public:
  static constexpr int64_t kRows = 37, kInputs = 80;

  LoadedLinear(Backend& backend, const StoredCase& stored,
               const std::function<void(std::vector<Tensor>&)>& change = {})
      : backend_(backend) {
    std::mt19937 random(31);
    std::vector<Tensor> tensors = stored_tensors(stored, "a", kRows, kInputs, random);
    for (Tensor& each : stored_tensors(stored, "b", kRows, kInputs, random)) {
      tensors.push_back(std::move(each));
    }
    if (change) change(tensors);
    source_ = weights::WeightSource(
        std::make_shared<const Checkpoint>(write_checkpoint(folder_, tensors)), "");
    for (const Tensor& each : tensors) fingerprint_.add(each.name, each.bytes, pool_);
  }

  const nn::LinearPart& load(const weights::LoadOptions& options, RowOrder order) {
    weights::Loader loader(source_, backend_, options);
    loader.linear(linear_, {.layer = "ab",
                            .k = kInputs,
                            .layouts = {{{"a", kRows}, {"b", kRows}}},
                            .order = order,
                            .large = true});
    EXPECT_EQ(loader.fingerprint().to_string(), fingerprint_.to_string());
    EXPECT_EQ(linear_.parts.size(), 1u);
    return linear_.parts.front();
  }

  const nn::Linear& linear() const { return linear_; }
  std::unique_ptr<weights::StoredWeight> weight(const char* module) const {
    return source_.weight(module, kRows, kInputs);
  }
  std::vector<std::byte> download(const Buffer& buffer) const {
    std::vector<std::byte> bytes(buffer.bytes());
    backend_.copy_to_host(bytes.data(), buffer.data(), bytes.size());
    return bytes;
  }

 private:
  Backend& backend_;
  TemporaryFolder folder_;
  ThreadPool pool_{3};
  weights::WeightSource source_;
  weights::Fingerprint fingerprint_;
  nn::Linear linear_;
};

}  // namespace octet::test
