// A small transformer that tests change and quantize, and statistics for it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "convert/quantize.h"
#include "convert/quantize_plan.h"
#include "cpu/cpu_backend.h"
#include "formats/error_message.h"
#include "formats/safetensors.h"
#include "formats/temporary_folder.h"
#include "models/golden_run.h"
#include "weights/written_tensors.h"

namespace octet::test {

class Quantizing : public testing::Test {
 protected:
  using Values = std::vector<float>;

  // The golden transformer in F32; `change` gets the values of each tensor by name.
  using Change = std::function<void(const std::string& name, Values& values, int64_t columns)>;
  void write_source(const Change& change = {}, DType dtype = DType::f32) {
    const SafetensorsFile golden(
        golden_path("model/transformer/diffusion_pytorch_model.safetensors"));
    std::vector<WrittenTensor> tensors;
    for (const TensorInfo& info : golden.tensors()) {
      const auto* stored = reinterpret_cast<const bf16_t*>(golden.bytes(info.name).data());
      Values values;
      for (size_t i = 0; i < info.elements(); ++i) values.push_back(to_f32(stored[i]));
      if (change) change(info.name, values, info.shape.back());
      std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bits_of(dtype) / 8));
      for (size_t i = 0; i < values.size(); ++i) {
        weights::store_f32(values[i], dtype, bytes.data(), static_cast<int64_t>(i));
      }
      tensors.push_back({info.name, dtype, info.shape, bytes});
    }
    std::filesystem::create_directories(source_);
    write_tensors(source_ + "/diffusion_pytorch_model.safetensors", tensors);
    std::filesystem::copy_file(golden_path("model/transformer/config.json"),
                               source_ + "/config.json",
                               std::filesystem::copy_options::overwrite_existing);
  }

  // The first network of its family.
  static const models::Family& family() { return models::family_named("ideogram4"); }
  convert::NetworkFiles files() const { return {.network = 0, .files = {.path = source_}}; }

  QuantizeReport quantize(const std::string& path, const convert::QuantizeOptions& options,
                          const OnQuantizeStep& on_step = {}) {
    const auto backend = make_cpu_backend({.threads = 1});
    const auto report = convert::quantize(*backend, family(), {files()}, path, options, on_step);
    peak_ = backend->memory().peak;
    return report;
  }

  void verify(const std::string& path, const convert::QuantizeOptions& options) {
    ThreadPool pool(1);
    convert::verify(pool, family(), {files()}, path, options, {});
  }

  // Normal numbers for all large linears; `outliers` times as large in one channel of each.
  quant::ActivationStatistics make_statistics(float outliers = 1) {
    quant::ActivationStatistics statistics;
    const convert::NetworkPlan plan(family(), files());
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (const auto& module : plan.modules()) {
      if (!module.large) continue;
      quant::LinearInputs& inputs = statistics["conditional." + module.inputs];
      if (inputs.k != 0) continue;
      inputs.k = module.k;
      for (int64_t i = 0; i < 16 * module.k; ++i) {
        inputs.rows.push_back(normal(random) * (i % module.k == 5 ? outliers : 1));
      }
      inputs.amax = quant::column_amax(inputs.rows, module.k);
    }
    return statistics;
  }

  TemporaryFolder folder_;
  std::string source_ = folder_.file("source");
  size_t peak_ = 0;  // bytes of the last run, in the backend's memory
};

}  // namespace octet::test
