// INT8 as ComfyUI, Transformer Lab and compressed-tensors store it: values by hand, and what is
// refused with which words.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/error_message.h"
#include "weights/dialect.h"
#include "weights/dialects/recipe_json.h"
#include "weights/tensor_files.h"

namespace octet::test {
namespace {

using weights::open_weight;
using weights::StoredWeight;
using Values = std::vector<float>;

const std::vector<int8_t> kCodes = {1, -2, 3, -128, 4, 0, 127, -5};  // [2, 4]
const Values kFirst = {1, -2, 3, -128}, kSecond = {4, 0, 127, -5};

Values scaled(Values values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

Tensor codes(const std::string& name = "a.weight", FileShape shape = {2, 4}) {
  return tensor(name, DType::i8, std::move(shape), kCodes);
}

class Int8DialectTest : public testing::Test {
 protected:
  Checkpoint write(std::vector<Tensor> tensors, const Metadata& metadata = {}) const {
    return write_checkpoint(folder_, tensors, metadata);
  }
  Checkpoint comfy(const std::string& json, const Tensor& scale) const {
    return write({codes(), scale, text_tensor("a.comfy_quant", json)});
  }
  Checkpoint comfy(const std::string& json) const {
    return comfy(json, f32("a.weight_scale", {2, 1}, {0.5f, 2}));
  }
  TemporaryFolder folder_;
};

// --- ComfyUI ---

TEST_F(Int8DialectTest, ComfyRowWise) {
  for (const FileShape& shape : {FileShape{2, 1}, FileShape{2}}) {
    const Checkpoint file =
        comfy(R"({"format": "int8_tensorwise"})", f32("a.weight_scale", shape, {0.5f, 2}));
    EXPECT_STREQ(weights::dialect_of(file, "a")->name, "comfyui");
    const auto weight = open_weight(file, "a", 2, 4);
    EXPECT_TRUE(weight->is_int8());
    EXPECT_EQ(weight->format(), "INT8 row-wise");
    EXPECT_EQ(weight->transform(), weights::StoredTransform());
    EXPECT_EQ(row_of(*weight, 0), scaled(kFirst, 0.5f));
    EXPECT_EQ(row_of(*weight, 1), scaled(kSecond, 2));
    std::vector<int8_t> stored(4);
    weight->read_stored(1, reinterpret_cast<std::byte*>(stored.data()));
    EXPECT_EQ(stored, std::vector<int8_t>(kCodes.begin() + 4, kCodes.end()));
    EXPECT_EQ(names_used(*weight),
              (std::vector<std::string>{"a.comfy_quant", "a.weight", "a.weight_scale"}));
  }
}

TEST_F(Int8DialectTest, ComfyTensorWise) {
  for (const FileShape& shape : {FileShape{}, FileShape{1}}) {
    const Checkpoint file =
        comfy(R"({"format": "int8_tensorwise"})", f32("a.weight_scale", shape, {-0.25f}));
    const auto weight = open_weight(file, "a", 2, 4);
    EXPECT_EQ(weight->format(), "INT8 tensor-wise");
    EXPECT_EQ(row_of(*weight, 1), scaled(kSecond, -0.25f));  // a negative scale is a number
  }
}

// H of 4 by its definition, entries -1/2 where row and column add up to 3.
TEST_F(Int8DialectTest, ComfyRotated) {
  for (const char* json :
       {R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4})",
        R"({"format": "int8_tensorwise", "params": {"convrot": true, "convrot_groupsize": 4}})"}) {
    const Checkpoint file = comfy(json);
    const auto weight = open_weight(file, "a", 2, 4);
    EXPECT_EQ(weight->format(), "INT8 row-wise, ConvRot 4");
    EXPECT_EQ(weight->transform().kind, Transform::rotate);
    EXPECT_EQ(weight->transform().group, 4);
    Values expected(4);
    for (size_t j = 0; j < 4; ++j) {
      for (size_t i = 0; i < 4; ++i) expected[j] += kFirst[i] * 0.5f * (i + j == 3 ? -0.5f : 0.5f);
    }
    EXPECT_EQ(row_of(*weight, 0), expected);
  }
}

TEST_F(Int8DialectTest, ComfyGroups) {
  const auto of_group = [&](const std::string& group) {
    const Checkpoint file = comfy(
        R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": )" + group + "}");
    return open_weight(file, "a", 2, 4)->transform().group;
  };
  EXPECT_EQ(of_group("4"), 4);
  EXPECT_ERROR_WITH(of_group("16"), "is 16, which does not divide the 4 inputs");
  for (const char* bad : {"0", "1", "2", "3", "8", "-4", "4.0", "4096", "\"4\"", "null", "true",
                          "[4]", "99999999999999999999", "18446744073709551615"}) {
    EXPECT_ERROR_WITH(of_group(bad), "\"convrot_groupsize\" is ");
  }
  const Checkpoint default_group = comfy(R"({"format": "int8_tensorwise", "convrot": true})");
  EXPECT_ERROR_WITH(open_weight(default_group, "a", 2, 4), "is 256, which does not divide");
}

TEST_F(Int8DialectTest, ComfyOfDescriptionsThatAreNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is empty"},
      {"{", "invalid JSON"},
      {"[]", "is an array of 0, expected an object"},
      {"{}", "\"format\" is missing"},
      {R"({"format": 8})", "\"format\" is 8, expected a string"},
      {R"({"format": "int8_tensorwise", "convrot": 1})", "\"convrot\" is 1, expected true"},
      {R"({"format": "int8_tensorwise", "params": 1})", "\"params\" is 1"},
      {R"({"format": "mxfp8"})", "the ComfyUI format \"mxfp8\" is not read"},
      {R"({"format": "convrot_w4a4"})", "the ComfyUI format \"convrot_w4a4\" is not read"},
      {R"({"format": "a\nb"})", "the ComfyUI format \"a\\u000ab\" is not read"},
      {R"({"format": "float8_e4m3fn"})", "\"a.weight\" is I8, expected F8_E4M3"},
      {R"({"format": "nvfp4"})", "\"a.weight\" is I8"},
  };
  for (const auto& [json, fault] : cases) {
    const Checkpoint file = comfy(json);
    EXPECT_ERROR_WITH(open_weight(file, "a", 2, 4), fault);
    EXPECT_ERROR_WITH(open_weight(file, "a", 2, 4), "w.safetensors");
  }
  const Checkpoint floats =
      write({codes(), f32("a.weight_scale", {}, {1}), f32("a.comfy_quant", {1}, {1})});
  EXPECT_ERROR_WITH(open_weight(floats, "a", 2, 4), "\"a.comfy_quant\" is F32 [1], expected U8");
}

TEST_F(Int8DialectTest, ComfyOfOtherShapesTypesAndWithoutParts) {
  const std::string json = R"({"format": "int8_tensorwise"})";
  const Tensor description = text_tensor("a.comfy_quant", json);
  const Checkpoint alone = write({description});
  EXPECT_ERROR_WITH(open_weight(alone, "a", 2, 4), "\"a.weight\" is missing");
  const Checkpoint unscaled = write({codes(), description});
  EXPECT_ERROR_WITH(open_weight(unscaled, "a", 2, 4), "\"a.weight_scale\" is missing");
  const Checkpoint floats =
      write({f32("a.weight", {2, 1}, {1, 2}), description, f32("a.weight_scale", {}, {1})});
  EXPECT_ERROR_WITH(open_weight(floats, "a", 2, 1), "\"a.weight\" is F32, expected I8");
  const Checkpoint sound = comfy(json);
  EXPECT_ERROR_WITH(open_weight(sound, "a", 4, 2), "is [2, 4], expected [4, 2]");
  const Checkpoint three = comfy(json, f32("a.weight_scale", {3}, {1, 1, 1}));
  EXPECT_ERROR_WITH(open_weight(three, "a", 2, 4), "\"a.weight_scale\" is F32 [3]");
  const Checkpoint blocks = comfy(json, f32("a.weight_scale", {2, 2}, {1, 1, 1, 1}));
  EXPECT_ERROR_WITH(open_weight(blocks, "a", 2, 4), "\"a.weight_scale\" is F32 [2, 2]");
  for (const float bad : {NAN, INFINITY}) {
    const Checkpoint damaged = comfy(json, f32("a.weight_scale", {2}, {1, bad}));
    EXPECT_EQ(row_of(*open_weight(damaged, "a", 2, 4), 0), kFirst);
    EXPECT_ERROR_WITH(open_weight(damaged, "a", 2, 4)->scale(1), "holds a NaN or an infinity");
  }
}

TEST_F(Int8DialectTest, ComfyForFloatingPoint) {
  const Checkpoint file = comfy(
      R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4,
          "full_precision_matrix_mult": true})");
  const auto weight = open_weight(file, "a", 2, 4);
  EXPECT_FALSE(weight->for_int8());
  const Checkpoint native =
      comfy(R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4})");
  EXPECT_EQ(row_of(*weight, 0), row_of(*open_weight(native, "a", 2, 4), 0));
}

TEST_F(Int8DialectTest, ComfySiblings) {
  const Checkpoint file =
      write({codes(), f32("a.weight_scale", {}, {1}),
             text_tensor("a.comfy_quant", R"({"format": "int8_tensorwise"})"),
             f32("a.input_scale", {}, {3}), f32("a.pre_quant_scale", {4}, {1, 2, 4, 0.5f})});
  const auto weight = open_weight(file, "a", 2, 4);
  EXPECT_EQ(weight->tensors().size(), 5u);
  EXPECT_EQ(weight->transform().smooth, (Values{1, 2, 4, 0.5f}));
  EXPECT_EQ(row_of(*weight, 0), (Values{1, -4, 12, -64}));
  const Checkpoint both = write(
      {codes(), f32("a.weight_scale", {}, {1}), f32("a.pre_quant_scale", {4}, {1, 2, 4, 0.5f}),
       text_tensor("a.comfy_quant",
                   R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":4})")});
  EXPECT_ERROR_WITH(open_weight(both, "a", 2, 4), "comes with a rotation");
}

TEST_F(Int8DialectTest, ComfyInMetadata) {
  const std::vector<Tensor> tensors = {codes(), f32("a.weight_scale", {2}, {0.5f, 2}),
                                       codes("diffusion_model.b.weight"),
                                       f32("diffusion_model.b.weight_scale", {}, {2})};
  const auto with = [&](const std::string& json) {
    return write(tensors, {{"_quantization_metadata", json}});
  };
  const Checkpoint file = with(
      R"({"layers": {"a": {"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4},
                     "b": {"format": "int8_tensorwise"}}})");
  EXPECT_EQ(open_weight(file, "a", 2, 4)->format(), "INT8 row-wise, ConvRot 4");
  const auto prefixed = open_weight(file, "diffusion_model.b", 2, 4);
  EXPECT_STREQ(weights::dialect_of(file, "diffusion_model.b")->name, "comfyui");
  EXPECT_EQ(row_of(*prefixed, 0), scaled(kFirst, 2));
  for (const char* bad : {"[]", "{}", R"({"layers": []})"}) {
    EXPECT_ERROR_WITH(open_weight(with(bad), "a", 2, 4), "an object \"layers\"");
  }
  EXPECT_ERROR_WITH(open_weight(with("{"), "a", 2, 4), "invalid JSON");
  EXPECT_ERROR_WITH(open_weight(with(R"({"layers": {"a": 1}})"), "a", 2, 4),
                    "layer \"a\": is 1, expected an object");
  // Another text is another description, whatever was read before.
  const Checkpoint other = with(R"({"layers": {"a": {"format": "int8_tensorwise"}}})");
  EXPECT_EQ(open_weight(other, "a", 2, 4)->format(), "INT8 row-wise");
}

// --- Transformer Lab ---

class TransformerLabTest : public Int8DialectTest {
 protected:
  static constexpr const char* kModule = "conditional.a";
  std::vector<Tensor> smoothed(const Values& smooth) const {
    return {codes("conditional.a.wq"), f32("conditional.a.ws", {2}, {1, 1}),
            f32("conditional.a.smooth", {static_cast<int64_t>(smooth.size())}, smooth)};
  }
};

TEST_F(TransformerLabTest, WithoutSmoothing) {
  for (const FileShape& shape : {FileShape{2}, FileShape{2, 1}}) {
    const Checkpoint file = write(
        {codes("conditional.a.wq"), tensor<bf16_t>("conditional.a.ws", DType::bf16, shape,
                                                   {from_f32<bf16_t>(0.5f), from_f32<bf16_t>(2)})});
    EXPECT_STREQ(weights::dialect_of(file, kModule)->name, "transformerlab");
    const auto weight = open_weight(file, kModule, 2, 4);
    EXPECT_TRUE(weight->is_int8());
    EXPECT_EQ(row_of(*weight, 0), scaled(kFirst, 0.5f));
    EXPECT_EQ(row_of(*weight, 1), scaled(kSecond, 2));
    EXPECT_EQ(weight->tensors().size(), 2u);
  }
}

TEST_F(TransformerLabTest, DirectionByMetadataThenByRecipe) {
  const auto tensors = smoothed({1, 2, 4, 0.5f});
  const Values divided = {1, -1, 0.75f, -256}, multiplied = {1, -4, 12, -64};
  const auto row = [&](const Metadata& metadata) {
    const Checkpoint file = write(tensors, metadata);
    const auto weight = open_weight(file, kModule, 2, 4);
    EXPECT_EQ(weight->transform().kind, Transform::smooth);
    EXPECT_EQ(weight->format(), "INT8 row-wise, SmoothQuant");
    EXPECT_EQ(weight->tensors().size(), 3u);
    return row_of(*weight, 0);
  };
  EXPECT_EQ(row({}), divided);  // four channels are too few to say anything else
  EXPECT_EQ(row({{"smooth", "divide"}}), divided);
  EXPECT_EQ(row({{"smooth", "multiply"}}), multiplied);
  EXPECT_ERROR_WITH(row({{"smooth", "add"}}), "the metadata entry \"smooth\" is \"add\"");
  folder_.write("recipe.json", R"({"format": "octet-w8a8", "smooth": "multiply", "alpha": 0.5})");
  EXPECT_EQ(row({}), multiplied);
  EXPECT_EQ(row({{"smooth", "divide"}}), divided);
  // A recipe of another tool, whose fields mean other things, says nothing.
  folder_.write("recipe.json", R"({"smooth": true, "alpha": "half", "protected": 17})");
  EXPECT_EQ(row({}), divided);
  folder_.write("recipe.json", R"({"format": "octet-w8a8", "smooth": true})");
  EXPECT_ERROR_WITH(row({}), "recipe.json: \"smooth\" is true, expected \"divide\"");
  folder_.write("recipe.json", "{");
  EXPECT_ERROR_WITH(row({}), "recipe.json: invalid JSON");
  folder_.write("recipe.json", "[]");
  EXPECT_ERROR_WITH(row({}), "expected an object");
  folder_.write("recipe.json", std::string(weights::kMaxRecipeBytes + 1, ' '));
  EXPECT_ERROR_WITH(row({}), "above the limit");
}

TEST_F(TransformerLabTest, RecipesOfOurOwn) {
  const auto parse = [](const std::string& fields) {
    return weights::parse_recipe(parse_json(R"({"format": "octet-w8a8", )" + fields + "}", "r"),
                                 "r");
  };
  const weights::StoredRecipe recipe =
      parse(R"("alpha": 0.25, "smooth": "multiply", "new": {}, "protected": ["layers.3.w2", "b"])");
  EXPECT_EQ(recipe.alpha, 0.25f);
  EXPECT_EQ(recipe.smooth, weights::SmoothDirection::multiply);
  EXPECT_EQ(recipe.protected_modules, (std::vector<std::string>{"layers.3.w2", "b"}));
  for (const char* bad : {"2", "-0.5", "\"0.5\"", "null", "99999999999999999999"}) {
    EXPECT_ERROR_WITH(parse(std::string(R"("alpha": )") + bad), "\"alpha\" is");
  }
  EXPECT_ERROR_WITH(parse(R"("protected": "b")"), "expected an array of names");
  EXPECT_ERROR_WITH(parse(R"("protected": ["b", 1])"), "expected an array of names");
  EXPECT_ERROR_WITH(parse(R"("smooth": "sideways")"), "\"smooth\" is \"sideways\"");
}

// Columns that smoothing made large tell which way the vector goes.
TEST_F(TransformerLabTest, DirectionByTheNumbers) {
  constexpr int64_t kHeight = 40, kK = 256;
  std::vector<int8_t> wide(kHeight * kK);
  Values grows(kK), shrinks(kK), flat(kK, 3.0f), unrelated(kK);
  for (int64_t j = 0; j < kK; ++j) {
    const auto at = static_cast<size_t>(j);
    for (int64_t row = 0; row < kHeight; ++row) {
      wide[static_cast<size_t>(row * kK + j)] =
          static_cast<int8_t>((row % 2 == 0 ? 1 : -1) * (2 + j / 3));
    }
    grows[at] = std::sqrt(static_cast<float>(1 + j));
    shrinks[at] = 1 / grows[at];
    unrelated[at] = j % 2 == 0 ? 1.0f : 2.0f;
  }
  const auto stored_smooth = [&](const Values& smooth) {
    const Checkpoint file = write({tensor("a.wq", DType::i8, {kHeight, kK}, wide),
                                   f32("a.ws", {}, {0.5f}), f32("a.smooth", {kK}, smooth)});
    return open_weight(file, "a", kHeight, kK)->transform().smooth[9];
  };
  EXPECT_EQ(stored_smooth(grows), 1 / grows[9]);
  EXPECT_EQ(stored_smooth(shrinks), shrinks[9]);
  EXPECT_EQ(stored_smooth(flat), 1 / 3.0f);
  EXPECT_EQ(stored_smooth(unrelated), 0.5f);
}

TEST_F(TransformerLabTest, WhatIsRefused) {
  for (const float bad : {0.0f, -0.0f, NAN, INFINITY, 1e-45f}) {
    const Checkpoint file = write(smoothed({1, 2, bad, 1}));
    EXPECT_ERROR_WITH(open_weight(file, kModule, 2, 4), "\"conditional.a.smooth\" holds a");
  }
  const Checkpoint longer = write(smoothed({1, 2, 3, 4, 5}));
  EXPECT_ERROR_WITH(open_weight(longer, kModule, 2, 4), "smooth\" is [5], expected [4]");
  const Checkpoint unscaled = write({codes("a.wq")});
  EXPECT_ERROR_WITH(open_weight(unscaled, "a", 2, 4), "\"a.ws\" is missing");
  const Checkpoint twice = write({codes("a.wq"), codes("a.weight"), f32("a.ws", {}, {1})});
  EXPECT_ERROR_WITH(open_weight(twice, "a", 2, 4), "both stand for the one weight");
  const Checkpoint floats = write({f32("a.wq", {1, 1}, {1}), f32("a.ws", {}, {1})});
  EXPECT_ERROR_WITH(open_weight(floats, "a", 1, 1), "\"a.wq\" is F32, expected I8");
}

// --- compressed-tensors ---

TEST_F(Int8DialectTest, CompressedTensors) {
  for (const FileShape& shape : {FileShape{2, 1}, FileShape{2}}) {
    const Checkpoint file = write({codes(), f32("a.weight_scale", shape, {0.5f, 2}),
                                   tensor<int8_t>("a.weight_zero_point", DType::i8, {2, 1}, {0, 0}),
                                   tensor<int64_t>("a.weight_shape", DType::i64, {2}, {2, 4}),
                                   f32("a.input_scale", {1}, {0.1f})});
    EXPECT_STREQ(weights::dialect_of(file, "a")->name, "compressed-tensors");
    const auto weight = open_weight(file, "a", 2, 4);
    EXPECT_TRUE(weight->is_int8());
    EXPECT_EQ(weight->tensors().size(), 5u);
    EXPECT_EQ(row_of(*weight, 0), scaled(kFirst, 0.5f));
    EXPECT_EQ(row_of(*weight, 1), scaled(kSecond, 2));
  }
}

TEST_F(Int8DialectTest, CompressedTensorsThatAreRefused) {
  const Tensor scale = f32("a.weight_scale", {}, {1});
  const Checkpoint asymmetric =
      write({codes(), scale, tensor<int8_t>("a.weight_zero_point", DType::i8, {2, 1}, {0, 1})});
  EXPECT_ERROR_WITH(open_weight(asymmetric, "a", 2, 4), "asymmetric weights");
  const Checkpoint grouped =
      write({codes(), scale, tensor<int32_t>("a.weight_g_idx", DType::i32, {4}, {0, 0, 1, 1})});
  EXPECT_ERROR_WITH(open_weight(grouped, "a", 2, 4), "in groups of inputs");
  const Checkpoint mislabeled =
      write({codes(), scale, tensor<int64_t>("a.weight_shape", DType::i64, {2}, {4, 2})});
  EXPECT_ERROR_WITH(open_weight(mislabeled, "a", 2, 4), "does not say [2, 4]");
  const Checkpoint of_groups = write({codes(), f32("a.weight_scale", {2, 2}, {1, 1, 1, 1})});
  EXPECT_ERROR_WITH(open_weight(of_groups, "a", 2, 4), "\"a.weight_scale\" is F32 [2, 2]");
  const Checkpoint bare = write({codes()});
  EXPECT_ERROR_WITH(open_weight(bare, "a", 2, 4), "is I8 without what would say how to read it");
}

TEST_F(Int8DialectTest, CompressedTensorsByTheirConfiguration) {
  const auto configure = [&](const std::string& weights) {
    folder_.write("config.json", R"({"quantization_config": {"config_groups": {"group_0": )"
                                 R"({"weights": )" +
                                     weights + "}}}}");
  };
  const auto opened_with = [&](const std::string& weights) {
    configure(weights);
    const Checkpoint file = write({codes(), f32("a.weight_scale", {}, {1})});
    return open_weight(file, "a", 2, 4)->format();
  };
  EXPECT_EQ(opened_with(R"({"num_bits": 8, "strategy": "channel"})"), "INT8 tensor-wise");
  EXPECT_EQ(opened_with("{}"), "INT8 tensor-wise");
  EXPECT_ERROR_WITH(opened_with(R"({"num_bits": 4})"), "have 4 bits");
  EXPECT_ERROR_WITH(opened_with(R"({"num_bits": "8"})"), "have \"8\" bits");
  EXPECT_ERROR_WITH(opened_with(R"({"strategy": "group"})"), "a scale per \"group\"");
  EXPECT_ERROR_WITH(opened_with(R"({"strategy": "block"})"), "a scale per \"block\"");
  // Read once, not again for each of the modules: it may be large.
  configure("{}");
  const Checkpoint file = write({codes(), f32("a.weight_scale", {}, {1})});
  open_weight(file, "a", 2, 4);
  configure(R"({"num_bits": 4})");
  EXPECT_EQ(open_weight(file, "a", 2, 4)->format(), "INT8 tensor-wise");
  std::filesystem::remove(folder_.file("config.json"));
  std::filesystem::create_symlink("config.json", folder_.file("config.json"));
  EXPECT_ERROR_WITH(open_weight(Checkpoint(file.path()), "a", 2, 4), "config.json: cannot be");
}

}  // namespace
}  // namespace octet::test
