// Weights of packed types, which are sources: bitsandbytes' 4 bits, NVFP4, scaled FP8 as ComfyUI
// has it, and GGUF's Q8_0. Values by hand, and what is refused with which words.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/error_message.h"
#include "formats/gguf_bytes.h"
#include "weights/dialect.h"
#include "weights/tensor_files.h"

namespace octet::test {
namespace {

using weights::open_weight;
using Values = std::vector<float>;
using Bytes = std::vector<uint8_t>;

class PackedDialectTest : public testing::Test {
 protected:
  Checkpoint write(const std::vector<Tensor>& tensors) const {
    return write_checkpoint(folder_, tensors);
  }
  TemporaryFolder folder_;
};

// --- bitsandbytes ---

class Nf4Test : public PackedDialectTest {
 protected:
  // The weight [2, 3] in blocks of 4, of which the first ends within the second row: its codes are
  // 0 1 2, 3 and then 4 5.
  std::vector<Tensor> tensors() const {
    return {tensor<uint8_t>("a.weight", DType::u8, {3, 1}, {0x01, 0x23, 0x45}),
            f32("a.weight.absmax", {2}, {2, 0.5f}), f32("a.weight.quant_map", {16}, book()),
            text_tensor(kState, kJson)};
  }
  static Values book() {
    Values values(16);
    for (size_t i = 0; i < 16; ++i) values[i] = static_cast<float>(i) - 7.5f;
    return values;
  }
  Checkpoint with(const Tensor& changed) const {
    std::vector<Tensor> all = tensors();
    for (Tensor& each : all) {
      if (each.name == changed.name) each = changed;
    }
    return write(all);
  }
  Checkpoint with_json(const std::string& json) const { return with(text_tensor(kState, json)); }

  static constexpr const char* kState = "a.weight.quant_state.bitsandbytes__nf4";
  static constexpr const char* kJson =
      R"({"quant_type": "nf4", "blocksize": 4, "dtype": "bfloat16", "shape": [2, 3]})";
};

TEST_F(Nf4Test, BlocksThatCrossRows) {
  const Checkpoint file = write(tensors());
  EXPECT_STREQ(weights::dialect_of(file, "a")->name, "bitsandbytes");
  const auto weight = open_weight(file, "a", 2, 3);
  EXPECT_EQ(weight->format(), "NF4");
  EXPECT_FALSE(weight->for_int8());
  EXPECT_EQ(weight->tensors().size(), 4u);
  EXPECT_EQ(row_of(*weight, 0), (Values{-7.5f * 2, -6.5f * 2, -5.5f * 2}));
  EXPECT_EQ(row_of(*weight, 1), (Values{-4.5f * 2, -3.5f * 0.5f, -2.5f * 0.5f}));
}

TEST_F(Nf4Test, AnOddNumberOfElements) {
  const Checkpoint file =
      write({tensor<uint8_t>("a.weight", DType::u8, {5}, {0x01, 0x23, 0x45, 0x67, 0x80}),
             f32("a.weight.absmax", {1}, {1}), f32("a.weight.quant_map", {16}, book()),
             text_tensor(kState, R"({"quant_type": "nf4", "blocksize": 64, "shape": [3, 3]})")});
  EXPECT_EQ(row_of(*open_weight(file, "a", 3, 3), 1), (Values{-4.5f, -3.5f, -2.5f}));
  EXPECT_EQ(row_of(*open_weight(file, "a", 3, 3), 2), (Values{-1.5f, -0.5f, 0.5f}));
}

TEST_F(Nf4Test, DoubleQuantisation) {
  Values nested_book(256);
  for (size_t i = 0; i < 256; ++i) nested_book[i] = static_cast<float>(i) / 4;
  const Checkpoint file =
      write({tensor<uint8_t>("a.weight", DType::u8, {3, 1}, {0x01, 0x23, 0x45}),
             tensor<uint8_t>("a.weight.absmax", DType::u8, {3}, {4, 8, 12}),
             f32("a.weight.quant_map", {16}, book()),
             f32("a.weight.nested_quant_map", {256}, nested_book),
             f32("a.weight.nested_absmax", {2}, {2, 10}),
             text_tensor("a.weight.quant_state.bitsandbytes__fp4",
                         R"({"quant_type": "fp4", "blocksize": 2, "shape": [2, 3],
                       "nested_blocksize": 2, "nested_dtype": "float32", "nested_offset": 0.5})")});
  const auto weight = open_weight(file, "a", 2, 3);
  EXPECT_EQ(weight->format(), "FP4, double quantisation");
  EXPECT_EQ(weight->tensors().size(), 6u);
  // Factors 1 * 2 + 0.5, 2 * 2 + 0.5, 3 * 10 + 0.5.
  EXPECT_EQ(row_of(*weight, 0), (Values{-7.5f * 2.5f, -6.5f * 2.5f, -5.5f * 4.5f}));
  EXPECT_EQ(row_of(*weight, 1), (Values{-4.5f * 4.5f, -3.5f * 30.5f, -2.5f * 30.5f}));
}

TEST_F(Nf4Test, TensorsThatDoNotFit) {
  const std::pair<Tensor, const char*> cases[] = {
      {tensor<uint8_t>("a.weight", DType::u8, {2, 1}, {1, 2}), "\"a.weight\" is U8 [2, 1]"},
      {f32("a.weight", {3, 1}, {1, 2, 3}), "\"a.weight\" is F32 [3, 1]"},
      {f32("a.weight.absmax", {3}, {1, 2, 3}), "absmax\" is F32 [3], expected F32 with 2"},
      {tensor<uint8_t>("a.weight.absmax", DType::u8, {2}, {1, 2}), "absmax\" is U8 [2]"},
      {f32("a.weight.quant_map", {15}, Values(15)), "quant_map\" is [15], expected [16]"},
      {f32("a.weight.quant_map", {16}, Values(16, NAN)), "quant_map\" holds a NaN"},
      {f32(kState, {1}, {1}), "is F32 [1], expected U8"},
  };
  for (const auto& [changed, fault] : cases) {
    const Checkpoint file = with(changed);
    EXPECT_ERROR_WITH(open_weight(file, "a", 2, 3), fault);
  }
  const Checkpoint damaged = with(f32("a.weight.absmax", {2}, {1, INFINITY}));
  EXPECT_EQ(row_of(*open_weight(damaged, "a", 2, 3), 0), (Values{-7.5f, -6.5f, -5.5f}));
  EXPECT_ERROR_WITH(row_of(*open_weight(damaged, "a", 2, 3), 1), "absmax\" holds a NaN or an inf");
  std::vector<Tensor> without = tensors();
  without.erase(without.begin() + 1);
  const Checkpoint missing = write(without);
  EXPECT_ERROR_WITH(open_weight(missing, "a", 2, 3), "\"a.weight.absmax\" is missing");
}

TEST_F(Nf4Test, StatesThatAreNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is empty"},
      {"[]", "expected an object"},
      {"{}", "has no \"quant_type\""},
      {R"({"quant_type": "int8", "blocksize": 4, "shape": [2, 3]})", "\"quant_type\" is \"int8\""},
      {R"({"quant_type": 4, "blocksize": 4, "shape": [2, 3]})", "\"quant_type\" is 4"},
      {R"({"quant_type": "nf4", "shape": [2, 3]})", "has no \"blocksize\""},
      {R"({"quant_type": "nf4", "blocksize": 0, "shape": [2, 3]})", "contains 0"},
      {R"({"quant_type": "nf4", "blocksize": -4, "shape": [2, 3]})", "contains -4"},
      {R"({"quant_type": "nf4", "blocksize": 4.5, "shape": [2, 3]})", "contains 4.5"},
      {R"({"quant_type": "nf4", "blocksize": 9223372036854775807, "shape": [2, 3]})", "contains 9"},
      {R"({"quant_type": "nf4", "blocksize": 4})", "has no \"shape\""},
      {R"({"quant_type": "nf4", "blocksize": 4, "shape": [6]})", "an array of 1"},
      {R"({"quant_type": "nf4", "blocksize": 4, "shape": [3, 2]})", "the weight is [3, 2]"},
      {R"({"quant_type": "nf4", "blocksize": 4, "shape": [2, 3], "nested_blocksize": 0})",
       "contains 0"},
      {R"({"quant_type": "nf4", "blocksize": 4, "shape": [2, 3], "nested_blocksize": 4})",
       "has no \"nested_offset\""},
      {R"({"quant_type": "nf4", "blocksize": 4, "shape": [2, 3], "nested_blocksize": 4,
           "nested_offset": 1e300})",
       "\"nested_offset\" is"},
      {R"({"quant_type": "nf4", "blocksize": 4, "shape": [2, 3], "nested_blocksize": 4,
           "nested_offset": 1})",
       "\"a.weight.absmax\" is F32 [2], expected U8"},
  };
  for (const auto& [json, fault] : cases) {
    const Checkpoint file = with_json(json);
    EXPECT_ERROR_WITH(open_weight(file, "a", 2, 3), fault);
  }
}

// --- ComfyUI ---

// 1, -2, 0.5; 4, 0, -0.125 in E4M3.
const Bytes kF8 = {0x38, 0xc0, 0x30, 0x48, 0x00, 0xa0};

TEST_F(PackedDialectTest, ComfyFp8) {
  const Checkpoint file = write({tensor("a.weight", DType::f8_e4m3, {2, 3}, kF8),
                                 f32("a.weight_scale", {}, {2}), f32("a.input_scale", {}, {2}),
                                 text_tensor("a.comfy_quant", R"({"format": "float8_e4m3fn"})")});
  EXPECT_STREQ(weights::dialect_of(file, "a")->name, "comfyui");
  const auto weight = open_weight(file, "a", 2, 3);
  EXPECT_EQ(weight->format(), "FP8 tensor-wise");
  EXPECT_EQ(row_of(*weight, 0), (Values{2, -4, 1}));
  EXPECT_EQ(weight->tensors().size(), 4u);
}

TEST_F(PackedDialectTest, OlderComfyFp8) {
  const Checkpoint file =
      write({tensor("model.diffusion_model.a.weight", DType::f8_e4m3, {2, 3}, kF8),
             f32("model.diffusion_model.a.scale_weight", {1}, {2}),
             f32("model.diffusion_model.a.scale_input", {1}, {2}),
             tensor<uint8_t>("model.diffusion_model.scaled_fp8", DType::f8_e4m3, {0}, {}),
             f32("b.scale_weight", {1}, {2})});
  const auto weight = open_weight(file, "model.diffusion_model.a", 2, 3);
  EXPECT_EQ(row_of(*weight, 1), (Values{8, 0, -0.25f}));
  EXPECT_EQ(names_used(*weight),
            (std::vector<std::string>{
                "model.diffusion_model.a.scale_input", "model.diffusion_model.a.scale_weight",
                "model.diffusion_model.a.weight", "model.diffusion_model.scaled_fp8"}));
  EXPECT_ERROR_WITH(open_weight(file, "b", 2, 3), "\"b.weight\" is missing");
}

class Nvfp4Test : public PackedDialectTest {
 protected:
  static constexpr int64_t kRows = 160, kK = 96;  // two tiles down, two across
  // Where the format puts the scale of a row's block.
  static size_t place(int64_t row, int64_t block) {
    return static_cast<size_t>(((row / 128) * 2 + block / 4) * 512 + (row % 32) * 16 +
                               ((row % 128) / 32) * 4 + block % 4);
  }
  std::vector<Tensor> tensors(DType scale_dtype = DType::f8_e4m3) const {
    Bytes weight(kRows * kK / 2), scales(256 * 8, 0x7f);  // what no row needs is a NaN
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<uint8_t>(i * 7);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t block = 0; block < kK / 16; ++block) {
        scales[place(row, block)] = scale_code(row, block);
      }
    }
    return {tensor("a.weight", DType::u8, {kRows, kK / 2}, weight),
            tensor("a.weight_scale", scale_dtype, {256, 8}, scales),
            f32("a.weight_scale_2", {}, {0.5f}),
            text_tensor("a.comfy_quant", R"({"format": "nvfp4"})")};
  }
  static uint8_t scale_code(int64_t row, int64_t block) {
    return static_cast<uint8_t>(1 + (row * 6 + block) % 0x7e);
  }
};

TEST_F(Nvfp4Test, Values) {
  constexpr float kMagnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (const DType scale_dtype : {DType::f8_e4m3, DType::u8}) {
    const Checkpoint file = write(tensors(scale_dtype));
    const auto weight = open_weight(file, "a", kRows, kK);
    EXPECT_EQ(weight->format(), "NVFP4");
    EXPECT_EQ(weight->dtype(), DType::bf16);
    EXPECT_EQ(weight->tensors().size(), 4u);
    for (int64_t row = 0; row < kRows; ++row) {
      const std::vector<float> values = row_of(*weight, row);
      for (int64_t j = 0; j < kK; ++j) {
        const auto pair = static_cast<uint8_t>((row * kK + j) / 2 * 7);
        const int code = j % 2 == 0 ? pair >> 4 : pair & 15;
        const float value = kMagnitudes[code & 7] * (code >= 8 ? -1.0f : 1.0f);
        ASSERT_EQ(values[static_cast<size_t>(j)],
                  value * f8_e4m3_to_f32(scale_code(row, j / 16)) * 0.5f)
            << row << " " << j;
      }
    }
  }
}

TEST_F(Nvfp4Test, WithAScaleOfTheInput) {
  std::vector<Tensor> all = tensors();
  const Checkpoint bare = write(all);
  const std::vector<float> before = row_of(*open_weight(bare, "a", kRows, kK), 3);
  std::vector<float> smooth(kK, 1.0f);
  smooth[5] = 0.25f;
  all.push_back(f32("a.pre_quant_scale", {kK}, smooth));
  const Checkpoint file = write(all);
  const auto weight = open_weight(file, "a", kRows, kK);
  EXPECT_EQ(weight->tensors().size(), 5u);
  const std::vector<float> after = row_of(*weight, 3);
  EXPECT_EQ(after[5], before[5] * 0.25f);
  EXPECT_EQ(after[6], before[6]);
  smooth[5] = 0;
  all.back() = f32("a.pre_quant_scale", {kK}, smooth);
  const Checkpoint zero = write(all);
  EXPECT_ERROR_WITH(open_weight(zero, "a", kRows, kK), "holds a zero for input channel 5");
}

// Writers pad to multiples of 16.
TEST_F(Nvfp4Test, Padded) {
  Bytes scales(128 * 4, 0x7f);
  for (size_t row = 0; row < 3; ++row) scales[row * 16] = 0x38;  // 1
  const Checkpoint file = write({tensor("a.weight", DType::u8, {16, 8}, Bytes(128, 0x2b)),
                                 tensor("a.weight_scale", DType::f8_e4m3, {128, 4}, scales),
                                 f32("a.weight_scale_2", {}, {1}),
                                 text_tensor("a.comfy_quant", R"({"format": "nvfp4"})")});
  EXPECT_EQ(row_of(*open_weight(file, "a", 3, 5), 2), (std::vector<float>{1, -1.5f, 1, -1.5f, 1}));
}

TEST_F(Nvfp4Test, WhatDoesNotFit) {
  const auto changed = [&](size_t at, const Tensor& tensor) {
    std::vector<Tensor> all = tensors();
    all[at] = tensor;
    return write(all);
  };
  const Checkpoint narrow =
      changed(0, tensor("a.weight", DType::u8, {kRows, kK}, Bytes(kRows * kK)));
  EXPECT_ERROR_WITH(open_weight(narrow, "a", kRows, kK), "\"a.weight\" is U8 [160, 96], expected");
  const Checkpoint flat =
      changed(1, tensor("a.weight_scale", DType::f8_e4m3, {kRows, 6}, Bytes(kRows * 6)));
  EXPECT_ERROR_WITH(open_weight(flat, "a", kRows, kK), "expected F8_E4M3 [256, 8]");
  const Checkpoint per_row = changed(2, f32("a.weight_scale_2", {kRows}, Values(kRows)));
  EXPECT_ERROR_WITH(open_weight(per_row, "a", kRows, kK), "has 160 scales, expected one");
  const Checkpoint damaged =
      changed(1, tensor("a.weight_scale", DType::f8_e4m3, {256, 8}, Bytes(256 * 8, 0x7f)));
  EXPECT_ERROR_WITH(row_of(*open_weight(damaged, "a", kRows, kK), 0), "weight_scale\" holds a NaN");
  const Checkpoint infinite = changed(2, f32("a.weight_scale_2", {}, {INFINITY}));
  EXPECT_ERROR_WITH(open_weight(infinite, "a", kRows, kK)->scale(0),
                    "weight_scale_2\" holds a NaN");
}

// --- GGUF ---

TEST_F(PackedDialectTest, GgufQ8) {
  const Checkpoint file(folder_.write("a.gguf", sound_gguf().bytes()));
  EXPECT_STREQ(weights::dialect_of(file, "a")->name, "gguf");
  const auto weight = open_weight(file, "a", 2, 64);
  EXPECT_EQ(weight->format(), "GGUF Q8_0");
  Values first(64), second(64);
  for (int i = 0; i < 64; ++i) {
    first[static_cast<size_t>(i)] = static_cast<float>(i - 64) * (i < 32 ? 0.5f : 2.0f);
    second[static_cast<size_t>(i)] = static_cast<float>(i) * (i < 32 ? -1.0f : 0.25f);
  }
  EXPECT_EQ(row_of(*weight, 0), first);
  EXPECT_EQ(row_of(*weight, 1), second);
  EXPECT_ERROR_WITH(open_weight(file, "a", 64, 2), "is [2, 64], expected [64, 2]");
}

TEST_F(PackedDialectTest, GgufOfOtherBlocks) {
  GgufParts parts;
  parts.tensors = {{"a.weight", {256, 1}, 12, 0}};
  parts.data = std::string(144, '\0');
  const Checkpoint file(folder_.write("a.gguf", parts.bytes()));
  EXPECT_ERROR_WITH(open_weight(file, "a", 1, 256), "\"a.weight\" is Q4_K; of ggml's block types");
}

// Blocks of ggml have fewer bytes than elements: what counts elements must not take them for bytes.
TEST_F(PackedDialectTest, GgufBlocksAreNoBytesOfOtherDialects) {
  constexpr uint32_t kF32 = 0, kQ4 = 2;  // of ggml; Q4_0 has 18 bytes for 32 elements
  std::string state = R"({"quant_type":"nf4","blocksize":64,"dtype":"float32","shape":[2,64]})";
  state.resize(18 * 4, ' ');
  GgufParts parts;
  parts.tensors = {{"a.weight.quant_state.bitsandbytes__nf4", {128}, kQ4, 0},
                   {"a.weight", {64}, kQ4, 96},
                   {"a.weight.absmax", {2}, kF32, 160},
                   {"a.weight.quant_map", {16}, kF32, 192}};
  parts.data = state;
  parts.data.resize(256);
  const Checkpoint file(folder_.write("a.gguf", parts.bytes()));
  EXPECT_ERROR_WITH(open_weight(file, "a", 2, 64), "is packed as Q4_0");
}

TEST_F(PackedDialectTest, GgufThatIsDamaged) {
  GgufParts parts = sound_gguf();
  parts.data.replace(32 + 2 * 34, 2, raw<uint16_t>(0x7c00));  // the scale of a block of row 1
  const Checkpoint file(folder_.write("a.gguf", parts.bytes()));
  EXPECT_EQ(row_of(*open_weight(file, "a", 2, 64), 0)[0], -32);
  EXPECT_ERROR_WITH(row_of(*open_weight(file, "a", 2, 64), 1), "NaN or an infinity in row 1");
}

TEST_F(PackedDialectTest, GgufOfPlainElements) {
  GgufParts parts = sound_gguf();
  parts.tensors[0].name = "p.weight";
  const Checkpoint file(folder_.write("a.gguf", parts.bytes()));
  EXPECT_STREQ(weights::dialect_of(file, "p")->name, "plain");
  EXPECT_EQ(row_of(*open_weight(file, "p", 2, 3), 1), (Values{3, 4, 5}));
}

}  // namespace
}  // namespace octet::test
