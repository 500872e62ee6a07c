// Quantizing a transformer: what is protected, and what is refused.
#include "convert/quantize.h"

#include "convert/quantizing.h"

namespace octet::test {
namespace {

using convert::QuantizeOptions;

namespace fs = std::filesystem;

// --- what is written ---

TEST_F(Quantizing, CountsWhatItWrites) {
  write_source();
  const QuantizeReport report = quantize(folder_.file("out"), {});
  ASSERT_EQ(report.networks.size(), 1u);
  EXPECT_EQ(report.networks[0].int8, 10);  // five in each of two blocks
  EXPECT_EQ(report.networks[0].protected_, 0);
  EXPECT_EQ(report.files, std::vector<std::string>{folder_.file("out")});
  EXPECT_EQ(report.output_bytes, fs::file_size(folder_.file("out")));
  EXPECT_TRUE(report.errors.empty()) << "nobody asked to measure";
  EXPECT_EQ(report.resumed_tensors, 0u);
  EXPECT_EQ(folder_.entries(), 2u) << "something is left beside the output";
  verify(folder_.file("out"), {});
}

TEST_F(Quantizing, MeasuresWithoutAnOutput) {
  write_source();
  const QuantizeReport report = quantize("", {.measure = true});
  EXPECT_EQ(report.errors.size(), 10u);
  EXPECT_EQ(report.errors[0].module, "layers.0.attention.qkv");
  for (const auto& error : report.errors) {
    EXPECT_GT(error.rowwise, 0) << error.module;
    EXPECT_LT(error.unquantized, error.rowwise) << error.module;
  }
  EXPECT_TRUE(report.files.empty());
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(Quantizing, VerifyFindsDamage) {
  write_source();
  const std::string out = folder_.file("out");
  const QuantizeOptions options = {.statistics = make_statistics()};
  for (const char* recipe : {"rowwise", "convrot", "smoothquant"}) {
    QuantizeOptions chosen = options;
    chosen.recipe = parse_recipe(recipe);
    quantize(out, chosen);
    verify(out, chosen);
    const std::string whole = folder_.read("out");
    const SafetensorsFile file(out);
    const uint64_t data = whole.size() - file.tensors().back().end;
    for (const char* name :
         {"layers.0.attention.qkv.weight", "layers.1.feed_forward.w2.weight_scale",
          "layers.1.ffn_norm1.weight", "input_proj.weight"}) {
      SCOPED_TRACE(std::string(recipe) + " " + name);
      std::string damaged = whole;
      char& byte = damaged[data + file.info(name).begin + 2];  // of F32, in the mantissa
      byte = static_cast<char>(byte ^ 0x40);
      folder_.write("damaged", damaged);
      EXPECT_NE(error_of([&] {
                  verify(folder_.file("damaged"), chosen);
                }).find(std::string(name).substr(0, std::string(name).rfind('.'))),
                std::string::npos);
    }
    // Made by another recipe.
    QuantizeOptions other = chosen;
    other.recipe = parse_recipe(std::string(recipe) == "rowwise" ? "convrot" : "rowwise");
    EXPECT_NE(error_of([&] { verify(out, other); }), "");
  }
}

// --- protection ---

TEST_F(Quantizing, ProtectsThePlantedFragileLinears) {
  // One weight in each row that makes its step fifty times as large as it was.
  const std::set<std::string> fragile = {"layers.0.feed_forward.w3", "layers.1.attention.o"};
  write_source([](const std::string& name, Values& values, int64_t columns) {
    if (name != "layers.0.feed_forward.w3.weight" && name != "layers.1.attention.to_out.0.weight") {
      return;
    }
    for (size_t row = 0; row < values.size(); row += static_cast<size_t>(columns)) {
      values[row + 3] = 20;
    }
  });
  QuantizeOptions options = {.protection = parse_protection("auto:2")};
  options.statistics = make_statistics();
  // The channel of the large weights is silent, so that their rounding does not help.
  for (auto& [name, inputs] : options.statistics) {
    for (size_t i = 3; i < inputs.rows.size(); i += static_cast<size_t>(inputs.k)) {
      inputs.rows[i] *= 0.001f;
    }
    inputs.amax = quant::column_amax(inputs.rows, inputs.k);
  }
  const QuantizeReport report = quantize(folder_.file("out"), options);
  const auto& modules = report.networks[0].protected_modules;
  EXPECT_EQ(std::set<std::string>(modules.begin(), modules.end()), fragile);
  EXPECT_EQ(report.networks[0].int8, 8);
  EXPECT_EQ(report.networks[0].protected_, 2);
  const SafetensorsFile file(folder_.file("out"));
  for (const std::string& name : fragile) {
    EXPECT_EQ(file.info(name + ".weight").dtype, DType::f32) << name;
  }
  EXPECT_EQ(file.info("layers.0.attention.qkv.weight").dtype, DType::i8);
  verify(folder_.file("out"), options);
}

TEST_F(Quantizing, ProtectsByName) {
  write_source();
  const QuantizeReport report =
      quantize(folder_.file("out"), {.protection = parse_protection("*.w2,layers.1.attention.*")});
  EXPECT_EQ(report.networks[0].protected_modules,
            (std::vector<std::string>{"layers.0.feed_forward.w2", "layers.1.attention.qkv",
                                      "layers.1.attention.o", "layers.1.feed_forward.w2"}));
}

// --- folding ---

TEST_F(Quantizing, HalfPrecisionHasNoRoomForFactors) {
  // Channel 5 of the activations is dead but for a little: its columns grow, beyond F16's 65504.
  write_source(
      [](const std::string& name, Values& values, int64_t) {
        if (name == "layers.0.feed_forward.w2.weight") values[0] = 60000;
      },
      DType::f16);
  QuantizeOptions options = {.recipe = parse_recipe("smoothquant:1"),
                             .protection = parse_protection("*")};
  options.statistics = make_statistics();
  for (auto& [name, inputs] : options.statistics) inputs.amax[0] = 1000;
  quantize(folder_.file("out"), options);
  verify(folder_.file("out"), options);
  const SafetensorsFile file(folder_.file("out"));
  EXPECT_EQ(file.info("layers.0.feed_forward.w2.weight").dtype, DType::f32);
  EXPECT_EQ(file.info("layers.0.attention_norm1.weight").dtype, DType::f32);
  EXPECT_EQ(file.info("input_proj.weight").dtype, DType::f16) << "nothing is folded there";
  float first = 0;
  std::memcpy(&first, file.bytes("layers.0.feed_forward.w2.weight").data(), sizeof first);
  EXPECT_GT(first, 2 * 60000.0f);
  EXPECT_TRUE(std::isfinite(first));
}

// --- memory ---

TEST_F(Quantizing, KeepsToItsMemory) {
  // w1 and w3 of 131072 rows: 17 MB each in F32.
  constexpr int64_t kWide = 131072;
  const SafetensorsFile golden(
      golden_path("model/transformer/diffusion_pytorch_model.safetensors"));
  std::vector<WrittenTensor> tensors;
  for (const TensorInfo& info : golden.tensors()) {
    FileShape shape = info.shape;
    for (int64_t& extent : shape) {
      if (info.name.find("feed_forward") != info.name.npos && extent == 48) extent = kWide;
    }
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    Values values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 251) - 125;
    tensors.push_back(written(info.name, shape, values));
  }
  fs::create_directories(source_);
  write_tensors(source_ + "/diffusion_pytorch_model.safetensors", tensors);
  std::string config;
  {
    std::ifstream in(golden_path("model/transformer/config.json"));
    config.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::string key = "\"intermediate_size\": 48";
  config.replace(config.find(key), key.size(), "\"intermediate_size\": 131072");
  folder_.write("source/config.json", config);

  QuantizeOptions options{.measure = true, .statistics = make_statistics()};
  for (auto& [name, inputs] : options.statistics) {
    inputs.rows.resize(static_cast<size_t>(inputs.k));  // one row: those of w2 are long
  }
  quantize(folder_.file("out"), options);
  const size_t unbounded = peak_;
  const std::string bytes = folder_.read("out");
  constexpr uint64_t kBound = convert::kLeastQuantizeMemory;
  options.max_memory = kBound + 3'000'000;  // and the statistics
  fs::remove(folder_.file("out"));
  quantize(folder_.file("out"), options);
  EXPECT_LE(peak_, kBound);
  EXPECT_GT(unbounded, peak_) << "the bound does nothing here";
  EXPECT_EQ(folder_.read("out"), bytes);
}

// --- refusals ---

TEST_F(Quantizing, RefusesBeforeItWorks) {
  write_source();
  const auto refusal_of = [&](const QuantizeOptions& options) {
    const std::string message = error_of([&] {
      quantize(folder_.file("out"), options, [](const QuantizeStep&) {
        ADD_FAILURE() << "work began";
        return false;
      });
    });
    EXPECT_EQ(folder_.entries(), 1u) << message;
    return message;
  };
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(refusal_of({.recipe = parse_recipe("smoothquant")}), "needs activations");
  has(refusal_of({.recipe = parse_recipe("convrot"), .dialect = OutputDialect::transformerlab}),
      "cannot express a rotation");
  has(refusal_of({.protection = parse_protection("layers.0.attention.qkv,layers.9.*")}),
      "\"layers.9.*\" names no large linear");
  has(refusal_of({.protection = parse_protection("input_proj")}), "names no large linear");
  has(refusal_of({.max_memory = convert::kLeastQuantizeMemory - 1}), "too few");
  QuantizeOptions options{.recipe = parse_recipe("smoothquant"), .statistics_name = "s"};
  options.statistics = make_statistics();
  options.statistics.erase("conditional.layers.1.feed_forward.w2");
  has(refusal_of(options), "another model");
  options.statistics = make_statistics();
  options.statistics["conditional.layers.1.feed_forward.w2"].k = 7;
  has(refusal_of(options), "another model");
}

TEST_F(Quantizing, RefusesWhatIsQuantizedAlready) {
  write_source();
  const std::string once = folder_.file("once.safetensors");
  quantize(once, {});
  source_ = once;
  EXPECT_NE(error_of([&] { quantize(folder_.file("twice"), {}); }).find("is in INT8 already"),
            std::string::npos);
}

}  // namespace
}  // namespace octet::test
