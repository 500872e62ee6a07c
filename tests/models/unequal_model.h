// The model of tests/golden with a smaller second transformer: one layer of its two, and text
// features of another width, which it never reads.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/json.h"
#include "formats/safetensors.h"
#include "models/golden_run.h"
#include "weights/written_tensors.h"

namespace octet::test {

inline constexpr int64_t kOtherTextFeatures = 8;

inline void write_unequal_model(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string part = folder + "/unconditional_transformer";
  const std::string file = part + "/diffusion_pytorch_model.safetensors";
  fs::copy(golden_path("model"), folder, fs::copy_options::recursive);
  nlohmann::json config = read_json_file(part + "/config.json");
  config["num_layers"] = 1;
  config["llm_features_dim"] = kOtherTextFeatures;
  std::ofstream(part + "/config.json") << config;
  std::vector<WrittenTensor> tensors;
  const SafetensorsFile golden(file);
  for (const TensorInfo& info : golden.tensors()) {
    if (info.name.starts_with("layers.1.")) continue;
    const auto bytes = golden.bytes(info.name);
    WrittenTensor tensor{info.name, info.dtype, info.shape, {bytes.begin(), bytes.end()}};
    if (info.name == "llm_cond_norm.weight" || info.name == "llm_cond_proj.weight") {
      // Any numbers will do.
      tensor.shape.back() = kOtherTextFeatures;
      const int64_t rows = tensor.shape.size() == 1 ? 1 : tensor.shape.front();
      tensor.bytes.resize(static_cast<size_t>(rows * kOtherTextFeatures) * sizeof(bf16_t));
    }
    tensors.push_back(std::move(tensor));
  }
  fs::remove(file);  // which is mapped, and read-only like the original
  write_tensors(file, tensors);
}

}  // namespace octet::test
