// A small checkpoint, and a cache of its converted weights.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/select.h"
#include "weights/converted_cache.h"
#include "weights/lora_files.h"

namespace octet::test {

namespace fs = std::filesystem;
using weights::ConvertedCache;

inline constexpr int64_t kCacheWide = 64, kCacheRows = 32;

// Two large linears and a small one, which stays in floating point.
inline void visit(nn::WeightVisitor& visitor) {
  nn::Linear unused;
  const auto spec = [](const char* name, bool large) {
    return nn::LinearSpec{
        .layer = name, .k = kCacheWide, .layouts = {{{name, kCacheRows}}}, .large = large};
  };
  visitor.linear(unused, spec("a", true));
  visitor.linear(unused, spec("b", true));
  visitor.linear(unused, spec("small", false));
}

class ConvertedCacheTest : public testing::Test {
 protected:
  ConvertedCacheTest() { write_base(1); }

  void write_base(float factor) {
    std::vector<WrittenTensor> tensors;
    for (const char* name : {"a", "b", "small"}) {
      std::vector<float> values(kCacheRows * kCacheWide);
      for (size_t j = 0; j < values.size(); ++j) {
        values[j] = factor * (static_cast<float>((j * 37 + name[0]) % 101) - 50);
      }
      tensors.push_back(
          written(std::string("x.") + name + ".weight", {kCacheRows, kCacheWide}, values));
    }
    write_tensors(folder_.file("base.safetensors"), tensors);
  }

  weights::WeightSource source() {
    return {std::make_shared<Checkpoint>(folder_.file("base.safetensors")), "x."};
  }

  ConvertedCache cache(const weights::WeightSource& from, const std::string& change = "") {
    const std::vector<std::string> changes(change.empty() ? 0 : 1, change);
    return {{cache_folder(), max_bytes_}, from, visit, changes};
  }

  // Loads everything, through the cache.
  void load(const std::string& change = "") {
    const weights::WeightSource from = source();
    ConvertedCache kept = cache(from, change);
    weights::LoadOptions options;
    options.converted = [&](const StoredWeight& weight, const QTensor& codes,
                            const auto& made_from) {
      const auto* bytes = codes.values.data;
      codes_[weight.module()].assign(bytes, bytes + kCacheRows * kCacheWide);
      kept.keep(weight, codes, made_from);
    };
    weights::Loader loader(from, *backend_, options);
    visit(loader);
    kept.commit();
  }

  fs::path cache_folder() const { return folder_.file("cache"); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(cache_folder())) return found;
    for (const auto& entry : fs::directory_iterator(cache_folder())) found.push_back(entry.path());
    return found;
  }

  TemporaryFolder folder_;
  uint64_t max_bytes_ = 1'000'000;
  std::unique_ptr<Backend> backend_ = select_backend({.device = "ref"});
  std::map<std::string, std::vector<std::byte>> codes_;
};

}  // namespace octet::test
