// LoRA files in every dialect against merges by hand.
#include "weights/lora/lora.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "devices/select.h"
#include "weights/loader.h"
#include "weights/lora_files.h"

namespace octet::test {
namespace {

TEST_F(LoraTest, AllDialects) {
  const std::vector<WrittenTensor> files[] = {
      pair("transformer.layers.0.at.o"),
      pair("transformer.layers.0.at.to_o.0"),
      pair("layers.0.at.o"),
      pair("transformer.layers.0.at.o", "lora.down", "lora.up"),
      pair("base_model.model.layers.0.at.to_o.0"),
      pair("base_model.model.transformer.layers.0.at.o", "lora_A.default", "lora_B.default"),
      pair("diffusion_model.layers.0.at.o"),
      pair("model.diffusion_model.layers.0.at.o"),
      pair("diffusion_model.layers.0.at.o", "lora_down", "lora_up"),
      pair("conditional_transformer.layers.0.at.o"),
      pair("conditional.layers.0.at.o"),
      pair("lora_unet_layers_0_at_o", "lora_down", "lora_up"),
      pair("lora_unet_layers_0_at_to_o_0", "lora_down", "lora_up"),
      pair("lora_transformer_layers_0_at_o"),
      pair("lycoris_layers_0_at_o", "lora_down", "lora_up"),
  };
  for (const auto& file : files) {
    SCOPED_TRACE(file.front().name);
    const auto read = lora(file);
    EXPECT_EQ(change(read, "layers.0.at.o", 2), kProduct);
    EXPECT_EQ(change(read, "layers.0.at.to_o.0", 2), kProduct);
    EXPECT_EQ(change(read, "layers.0.at.o", 2, /*network=*/1), kNothing);
    EXPECT_EQ(change(read, "mlp_in", 2), kNothing);
    EXPECT_TRUE(read->changes(0));
    EXPECT_FALSE(read->changes(1));
  }
  EXPECT_EQ(change(lora(pair("lora_unet_mlp_in")), "mlp_in", 2), kProduct);
}

TEST_F(LoraTest, AllTypesOfNumbers) {
  const auto narrow = [&]<class T>(DType dtype, T) {
    std::vector<T> down, up;
    for (const float value : kDown) down.push_back(from_f32<T>(value));
    for (const float value : kUp) up.push_back(from_f32<T>(value));
    const auto read = lora({written("mlp_in.lora_A.weight", dtype, {1, 3}, down),
                            written("mlp_in.lora_B.weight", dtype, {2, 1, 1, 1}, up)});
    EXPECT_EQ(change(read, "mlp_in", 2), kProduct);
  };
  narrow(DType::bf16, bf16_t{});
  narrow(DType::f16, f16_t{});
}

TEST_F(LoraTest, StrengthAndAlphaAreFactors) {
  const auto with_alpha = [&](WrittenTensor alpha, float strength) {
    auto tensors = pair("mlp_in");
    tensors.push_back(std::move(alpha));
    return change(lora(tensors, {.strength = strength}), "mlp_in", 2);
  };
  EXPECT_EQ(with_alpha(written("mlp_in.alpha", {}, {4}), 0.5f), times(2, kProduct));
  EXPECT_EQ(with_alpha(written<int64_t>("mlp_in.alpha", DType::i64, {1}, {4}), -1),
            times(-4, kProduct));
  EXPECT_EQ(with_alpha(written<double>("mlp_in.alpha", DType::f64, {}, {0.5}), 1),
            times(0.5f, kProduct));
  EXPECT_EQ(change(lora(pair("mlp_in"), {.strength = 0.25f}), "mlp_in", 2), times(0.25f, kProduct));
  const auto none = lora(pair("mlp_in"), {.strength = 0});
  EXPECT_EQ(change(none, "mlp_in", 2), kNothing);
  EXPECT_FALSE(none->changes(0));
}

// alpha / rank with a rank above 1: five rows, so that one is left over after four.
TEST_F(LoraTest, RanksAreSummed) {
  const std::vector<float> down = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 2, 0, -2};
  const std::vector<float> up = {1, 2, 3, 4, 5, 0, 0, 1, 0, -1};
  const auto read =
      lora({written("mlp_in.lora_A.weight", {5, 3}, down),
            written("mlp_in.lora_B.weight", {2, 5}, up), written("mlp_in.alpha", {}, {10})});
  // Row 0: (1 + 4 + 10, 2 + 4, 3 + 4 - 10); row 1: (-2, 0, 1 + 2). Times 10 / 5.
  EXPECT_EQ(change(read, "mlp_in", 2), (std::vector<float>{30, 12, -6, -4, 0, 6}));
}

TEST_F(LoraTest, FusedOnSplitAndSplitOnFused) {
  const auto fused = lora({written("layers.0.at.fused.lora_A.weight", {1, 3}, {1, 2, 3}),
                           written("layers.0.at.fused.lora_B.weight", {4, 1}, {1, 2, 3, 4})});
  const std::vector<float> all = {1, 2, 3, 2, 4, 6, 3, 6, 9, 4, 8, 12};
  EXPECT_EQ(change(fused, "layers.0.at.fused", 4), all);
  EXPECT_EQ(change(fused, "layers.0.at.a", 2), std::vector<float>(all.begin(), all.begin() + 6));
  EXPECT_EQ(change(fused, "layers.0.at.b", 1), (std::vector<float>{3, 6, 9}));
  EXPECT_EQ(change(fused, "layers.0.at.c", 1), (std::vector<float>{4, 8, 12}));

  // Of different ranks, and none for b.
  const auto split = lora({written("layers.0.at.a.lora_A.weight", {1, 3}, {1, 1, 1}),
                           written("layers.0.at.a.lora_B.weight", {2, 1}, {1, 2}),
                           written("layers.0.at.c.lora_A.weight", {2, 3}, {1, 0, 0, 0, 0, 1}),
                           written("layers.0.at.c.lora_B.weight", {1, 2}, {5, 7})});
  EXPECT_EQ(change(split, "layers.0.at.fused", 4),
            (std::vector<float>{1, 1, 1, 2, 2, 2, 0, 0, 0, 5, 0, 7}));
  EXPECT_EQ(change(split, "layers.0.at.c", 1), (std::vector<float>{5, 0, 7}));
  EXPECT_EQ(change(split, "layers.0.at.b", 1), (std::vector<float>{0, 0, 0}));
}

TEST_F(LoraTest, WholeDifferences) {
  const auto read =
      lora({written("diffusion_model.mlp_in.diff", {2, 3}, {1, 2, 3, 4, 5, 6})}, {.strength = 2});
  EXPECT_EQ(change(read, "mlp_in", 2), (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

TEST_F(LoraTest, Networks) {
  const auto nets = [&](const std::vector<WrittenTensor>& tensors,
                        const std::vector<std::string>& networks) {
    const auto read = lora(tensors, {.networks = networks});
    return std::pair(change(read, "mlp_in", 2), change(read, "mlp_in", 2, 1));
  };
  const std::vector<std::string> as_named, of_first = {"cond"}, of_second = {"unconditional"},
                                           of_all = {"all"};
  using Both = std::pair<std::vector<float>, std::vector<float>>;
  const Both first{kProduct, kNothing}, second{kNothing, kProduct}, both{kProduct, kProduct};
  for (const char* prefix : {"transformer.", "diffusion_model.", "", "conditional_transformer."}) {
    const auto file = pair(std::string(prefix) + "mlp_in");
    EXPECT_EQ(nets(file, as_named), first);
    EXPECT_EQ(nets(file, of_first), first);
    EXPECT_EQ(nets(file, of_second), second);
    EXPECT_EQ(nets(file, of_all), both);
  }
  for (const char* prefix : {"unconditional_transformer.", "unconditional.", "uncond."}) {
    const auto file = pair(std::string(prefix) + "mlp_in");
    EXPECT_EQ(nets(file, as_named), second);
    EXPECT_EQ(nets(file, of_first), first);
    EXPECT_EQ(nets(file, of_all), both);
  }
  // A part for each: the user chooses among them, they are not moved.
  auto file = pair("transformer.mlp_in");
  for (auto& each : pair("unconditional_transformer.mlp_in")) {
    if (each.name.ends_with("B.weight")) each = written(each.name, {2, 1}, {-10, -20});
    file.push_back(each);
  }
  const std::vector<float> other = times(-1, kProduct);
  EXPECT_EQ(nets(file, as_named), Both(kProduct, other));
  EXPECT_EQ(nets(file, of_all), Both(kProduct, other));
  EXPECT_EQ(nets(file, of_first), first);
  EXPECT_EQ(nets(file, of_second), Both(kNothing, other));
  EXPECT_EQ(nets(file, {"conditional", "uncond"}), Both(kProduct, other));
  EXPECT_ERROR_WITH(lora(file, {.networks = {"third"}}),
                    "\"third\", which the model does not have; expected conditional, "
                    "unconditional, or all");
}

TEST_F(LoraTest, NetworksOfDifferentSizes) {
  const octet::Lora of_all{.networks = {"all"}}, of_second{.networks = {"uncond"}};
  EXPECT_EQ(change(lora(pair("mlp.alike")), "mlp.alike", 2), kProduct);
  EXPECT_ERROR_WITH(lora(pair("mlp.alike"), of_all),
                    "\"mlp.alike\" is not a linear of the unconditional network");
  EXPECT_ERROR_WITH(lora(pair("unconditional.mlp.alike")), "of the unconditional network");
  EXPECT_ERROR_WITH(lora(pair("mlp.other"), of_all), "\"mlp.other\" is not a linear of the model");
  // Each matrix fits one of the two.
  EXPECT_ERROR_WITH(lora(pair("mlp_alike"), of_second), "expected [rank, 3] and [5, rank]");
  EXPECT_ERROR_WITH(lora(pair("mlp_alike"), of_all), "expected [rank, 3] and [5, rank]");
  std::vector<WrittenTensor> larger = pair("mlp_alike");
  larger[1] = written(larger[1].name, {5, 1}, {1, 2, 3, 4, 5});
  EXPECT_ERROR_WITH(lora(larger), "expected [rank, 3] and [2, rank]");
  const auto read = lora(larger, of_second);
  EXPECT_EQ(change(read, "mlp_alike", 5, 1),
            (std::vector<float>{1, 2, 3, 2, 4, 6, 3, 6, 9, 4, 8, 12, 5, 10, 15}));
  EXPECT_EQ(change(read, "mlp_alike", 2), kNothing);
  EXPECT_TRUE(read->changes(1));
  EXPECT_FALSE(read->changes(0));
}

TEST_F(LoraTest, StrengthsBeyondAllReasonAreRefused) {
  for (const float strength : {101.0f, -1e9f, INFINITY, NAN}) {
    EXPECT_ERROR_WITH(lora(pair("mlp_in"), {.strength = strength}), "from -100 to 100");
  }
}

TEST_F(LoraTest, SeveralStack) {
  const auto first = lora(pair("mlp_in")), second = lora(pair("mlp_in"), {.strength = -3});
  auto base = std::make_unique<GivenWeight>(2, std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto merged = weights::merge_loras({first, second}, 0)(std::move(base), "mlp_in");
  EXPECT_EQ(values_of(*merged), (std::vector<float>{-19, -38, -57, -36, -75, -114}));
  EXPECT_EQ(merged->format(), "F32 + LoRA");
}

TEST_F(LoraTest, ConfigurationOfDiffusersAndPeft) {
  const auto with = [&](const std::string& json, const std::string& prefix = "transformer.") {
    return change(lora(pair(prefix + "layers.0.at.o"), {}, {{"lora_adapter_metadata", json}}),
                  "layers.0.at.o", 2);
  };
  EXPECT_EQ(with(R"({"transformer.lora_alpha": 8, "transformer.r": 1})"), times(8, kProduct));
  EXPECT_EQ(with(R"({"lora_alpha": 8, "r": 1})", ""), times(8, kProduct));
  EXPECT_EQ(with(R"({"other.lora_alpha": 8})"), kProduct);
  EXPECT_EQ(with(R"({"transformer.lora_alpha": 8, "transformer.alpha_pattern": {"at.o": 2}})"),
            times(2, kProduct));
  EXPECT_EQ(with(R"({"transformer.lora_alpha": 8, "transformer.alpha_pattern": {"t.o": 2}})"),
            times(8, kProduct));
  EXPECT_EQ(with(R"({"lora_alpha": 8, "alpha_pattern": {"^layers.0.at.o": 3, "^o": 5}})", ""),
            times(3, kProduct));
  // 4 / sqrt(rank): a rank of 4 tells it from alpha / rank.
  const auto stabilised =
      lora({written("mlp_in.lora_A.weight", {4, 3}, {1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
            written("mlp_in.lora_B.weight", {2, 4}, {10, 0, 0, 0, 20, 0, 0, 0})},
           {}, {{"lora_adapter_metadata", R"({"lora_alpha": 4, "use_rslora": true})"}});
  EXPECT_EQ(change(stabilised, "mlp_in", 2), times(2, kProduct));
  // Alpha in a tensor is of this module, and counts before that of the whole file.
  auto tensors = pair("mlp_in");
  tensors.push_back(written("mlp_in.alpha", {}, {3}));
  EXPECT_EQ(
      change(lora(tensors, {}, {{"lora_adapter_metadata", R"({"lora_alpha": 8})"}}), "mlp_in", 2),
      times(3, kProduct));
  // PEFT's own files say it beside them.
  write_tensors(folder_.file("adapter_model.safetensors"), pair("base_model.model.mlp_in"));
  folder_.write("adapter_config.json", R"({"lora_alpha": 16, "use_dora": false})");
  const auto peft = std::make_shared<Lora>(
      octet::Lora{.file = folder_.file("adapter_model.safetensors")}, kNetworks, both_networks());
  EXPECT_EQ(change(peft, "mlp_in", 2), times(16, kProduct));
}

TEST_F(LoraTest, ConfigurationsThatAreNoFilesAreNamed) {
  const std::string config = folder_.file("adapter_config.json");
  write_tensors(folder_.file("adapter_model.safetensors"), pair("base_model.model.mlp_in"));
  const auto sentence = [&] {
    return error_of([&] {
      Lora({.file = folder_.file("adapter_model.safetensors")}, kNetworks, both_networks());
    });
  };
  std::filesystem::create_symlink("adapter_config.json", config);
  EXPECT_TRUE(contains(sentence(), config + ": cannot be opened: ")) << sentence();
  std::filesystem::remove(config);
  std::filesystem::create_symlink("nothing", config);
  EXPECT_EQ(sentence(), config + ": is a link to a file that is missing");
  std::filesystem::remove(config);
  std::filesystem::create_directory(config);
  EXPECT_EQ(sentence(), config + ": is a folder, expected a regular file");
}

TEST_F(LoraTest, MergesBeforeTheTransform) {
  std::vector<float> codes(2 * 16), down(16), up = {0.5f, -2};
  for (size_t j = 0; j < codes.size(); ++j) codes[j] = static_cast<float>((j * 37) % 255) - 127;
  for (size_t j = 0; j < down.size(); ++j) down[j] = static_cast<float>(j) - 7.5f;
  const std::vector<std::vector<nn::LinearSpec>> linears = {
      {{.layer = "m", .k = 16, .layouts = {{{"m", 2}}}}}};
  write_tensors(folder_.file("m.safetensors"), {written("m.lora_A.weight", {1, 16}, down),
                                                written("m.lora_B.weight", {2, 1}, up)});
  const auto read = std::make_shared<Lora>(octet::Lora{.file = folder_.file("m.safetensors")},
                                           kNetworks, linears);
  weights::StoredTransform rotated{.kind = Transform::rotate, .group = 16};
  weights::StoredTransform smoothed{.kind = Transform::smooth, .smooth = std::vector<float>(16, 4)};
  smoothed.smooth[3] = 0.5f;
  for (const auto& transform : {weights::StoredTransform{}, rotated, smoothed}) {
    const GivenWeight base(2, codes, transform, /*int8=*/true);
    const auto merged = weights::merge_loras({read}, 0)(
        std::make_unique<GivenWeight>(2, codes, transform, /*int8=*/true), "m");
    EXPECT_TRUE(merged->for_int8());
    EXPECT_FALSE(merged->is_int8());
    EXPECT_EQ(merged->dtype(), DType::f32);
    EXPECT_EQ(merged->transform(), transform);
    EXPECT_EQ(merged->format(), "INT8 + LoRA");
    EXPECT_EQ(merged->scale(1), 1);
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<float> expected(16), stored(16), got(16);
      base.read(row, expected.data());
      for (size_t j = 0; j < 16; ++j) expected[j] += up[static_cast<size_t>(row)] * down[j];
      merged->read(row, got.data());
      merged->read_stored(row, reinterpret_cast<std::byte*>(stored.data()));
      // Values of up to 400, each the sum of 16 roundings in a rotation and its inverse.
      for (size_t j = 0; j < 16; ++j) EXPECT_NEAR(got[j], expected[j], 1e-4);
      transform.apply(expected.data(), 16);
      EXPECT_EQ(stored, expected);
    }
  }
}

// The codes that the loader makes of a merged INT8 weight, under its transform.
TEST_F(LoraTest, RequantizesOnceUnderTheSameTransform) {
  constexpr int64_t k = 64, n = 32;
  std::vector<float> codes(n * k), down(k), up(n);
  for (size_t j = 0; j < codes.size(); ++j) codes[j] = static_cast<float>((j * 91) % 255) - 127;
  for (size_t j = 0; j < down.size(); ++j) down[j] = static_cast<float>(j % 7) - 3;
  for (size_t j = 0; j < up.size(); ++j) up[j] = static_cast<float>(j % 5) - 2;
  const std::vector<std::vector<nn::LinearSpec>> linears = {
      {{.layer = "m", .k = k, .layouts = {{{"m", n}}}}}};
  write_tensors(folder_.file("base.safetensors"), {written("m.weight", {n, k}, codes)});
  write_tensors(folder_.file("m.safetensors"),
                {written("m.lora_A.weight", {1, k}, down), written("m.lora_B.weight", {n, 1}, up)});
  const auto read = std::make_shared<Lora>(octet::Lora{.file = folder_.file("m.safetensors")},
                                           kNetworks, linears);
  const weights::StoredTransform rotated{.kind = Transform::rotate, .group = 16};
  weights::WeightSource source(std::make_shared<Checkpoint>(folder_.file("base.safetensors")), "");
  const auto merge = weights::merge_loras({read}, 0);
  source.set_change([&](std::unique_ptr<StoredWeight>, const std::string& module) {
    return merge(std::make_unique<GivenWeight>(n, codes, rotated, /*int8=*/true), module);
  });
  const auto backend = select_backend({.device = "ref"});
  int calls = 0;
  weights::LoadOptions options;
  options.converted = [&](const StoredWeight& weight, const QTensor& made, const auto&) {
    ++calls;
    EXPECT_EQ(weight.transform(), rotated);
    for (int64_t row = 0; row < n; ++row) {
      std::vector<float> stored(k);
      weight.read_stored(row, reinterpret_cast<std::byte*>(stored.data()));
      const float scale = made.scales.as<float>()[row];
      float amax = 0;
      for (const float value : stored) amax = std::max(amax, std::abs(value));
      EXPECT_FLOAT_EQ(scale, amax / 127);
      for (int64_t j = 0; j < k; ++j) {
        const float code = made.values.as<int8_t>()[row * k + j];
        EXPECT_NEAR(code * scale, stored[static_cast<size_t>(j)], 0.5001f * scale);
      }
    }
  };
  weights::Loader loader(source, *backend, options);
  nn::Linear linear;
  loader.linear(linear, linears.front().front());
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(linear.is_int8());
}

TEST_F(LoraTest, FingerprintAndIdentityFollowContentStrengthAndNetworks) {
  ThreadPool pool(2);
  const auto fingerprint = [&](const std::shared_ptr<const Lora>& from) {
    weights::Fingerprint sum;
    const auto merged = weights::merge_loras({from}, 0)(
        std::make_unique<GivenWeight>(2, std::vector<float>(6)), "mlp_in");
    for (const auto& tensor : merged->tensors()) sum.add(tensor.name, tensor.bytes, pool);
    return sum.to_string();
  };
  const auto one = lora(pair("mlp_in")), same = lora(pair("mlp_in"));
  const auto weaker = lora(pair("mlp_in"), {.strength = 0.5f});
  auto tensors = pair("mlp_in");
  tensors[0] = written(tensors[0].name, {1, 3}, {1, 2, 4});
  const auto other = lora(tensors);
  tensors = pair("mlp_in");
  tensors.push_back(written("mlp_in.alpha", {}, {2}));
  const auto scaled = lora(tensors);
  const auto moved = lora(pair("mlp_in"), {.networks = {"all"}});
  EXPECT_EQ(fingerprint(one), fingerprint(same));
  EXPECT_EQ(one->identity(pool), same->identity(pool));
  for (const auto& each : {weaker, other, scaled}) {
    EXPECT_NE(fingerprint(each), fingerprint(one));
    EXPECT_NE(each->identity(pool), one->identity(pool));
  }
  EXPECT_NE(moved->identity(pool), one->identity(pool));
}

}  // namespace
}  // namespace octet::test
