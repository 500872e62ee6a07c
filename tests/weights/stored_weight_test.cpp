// Rows of weights in every type that a checkpoint may store them in, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/error_message.h"
#include "weights/dialect.h"
#include "weights/tensor_files.h"

namespace octet::test {
namespace {

using weights::open_weight;
using weights::StoredWeight;

template <class T>
Tensor rounded(DType dtype, const std::vector<float>& values) {
  std::vector<T> narrow;
  for (const float value : values) narrow.push_back(from_f32<T>(value));
  return tensor("a.weight", dtype, {2, 3}, narrow);
}

class StoredWeightTest : public testing::Test {
 protected:
  Checkpoint write(const std::vector<Tensor>& tensors) {
    return write_checkpoint(folder_, tensors);
  }

  static std::vector<float> row(const StoredWeight& rows, int64_t index, DType to = DType::f32) {
    std::vector<float> values(3);
    if (to == DType::f32) {
      rows.read(index, to, reinterpret_cast<std::byte*>(values.data()));
      return values;
    }
    std::vector<bf16_t> narrow(3);
    rows.read(index, to, reinterpret_cast<std::byte*>(narrow.data()));
    for (size_t i = 0; i < 3; ++i) values[i] = to_f32(narrow[i]);
    return values;
  }

  TemporaryFolder folder_;
};

const std::vector<float> kValues = {1, -2, 0.5f, 4, 0, -0.125f};  // numbers of every type here
const std::vector<float> kFirstRow = {1, -2, 0.5f}, kSecondRow = {4, 0, -0.125f};

// 1, -2, 0.5; 4, 0, -0.125 in E4M3: sign, four bits of exponent with bias 7, three of mantissa.
const std::vector<uint8_t> kF8Codes = {0x38, 0xc0, 0x30, 0x48, 0x00, 0xa0};

TEST_F(StoredWeightTest, OfFloats) {
  const Tensor stored[] = {rounded<float>(DType::f32, kValues),
                           rounded<bf16_t>(DType::bf16, kValues),
                           rounded<f16_t>(DType::f16, kValues)};
  for (const Tensor& each : stored) {
    SCOPED_TRACE(name_of(each.dtype));
    const Checkpoint checkpoint = write({each});
    const auto opened = open_weight(checkpoint, "a", 2, 3);
    const StoredWeight& rows = *opened;
    EXPECT_EQ(rows.dtype(), each.dtype);
    EXPECT_EQ(rows.bytes(), each.bytes.size());
    for (const DType to : {DType::f32, DType::bf16}) {
      EXPECT_EQ(row(rows, 0, to), kFirstRow);
      EXPECT_EQ(row(rows, 1, to), kSecondRow);
    }
  }
}

TEST_F(StoredWeightTest, OfF16AsTheyAre) {
  const Checkpoint checkpoint = write({rounded<f16_t>(DType::f16, kValues)});
  std::vector<f16_t> narrow(3);
  open_weight(checkpoint, "a", 2, 3)->read_stored(1, reinterpret_cast<std::byte*>(narrow.data()));
  EXPECT_EQ(to_f32(narrow[2]), -0.125f);
}

TEST_F(StoredWeightTest, TrailingExtentsOfOneDoNotCount) {
  Tensor stored = rounded<float>(DType::f32, kValues);
  stored.shape = {2, 3, 1, 1};
  const Checkpoint checkpoint = write({stored});
  EXPECT_EQ(row(*open_weight(checkpoint, "a", 2, 3), 1), kSecondRow);
}

TEST_F(StoredWeightTest, OfFp8WithAScalePerRow) {
  for (const FileShape& shape : {FileShape{2}, FileShape{2, 1}}) {
    const Checkpoint checkpoint =
        write({tensor("a.weight", DType::f8_e4m3, {2, 3}, kF8Codes),
               tensor<float>("a.weight_scale", DType::f32, shape, {2, 0.5f})});
    const auto opened = open_weight(checkpoint, "a", 2, 3);
    const StoredWeight& rows = *opened;
    EXPECT_EQ(rows.dtype(), DType::bf16);
    EXPECT_EQ(row(rows, 0), (std::vector<float>{2, -4, 1}));
    EXPECT_EQ(row(rows, 1), (std::vector<float>{2, 0, -0.0625f}));
    // Without loss: the stored values and their scale apart.
    bf16_t values[3];
    rows.read_stored(1, reinterpret_cast<std::byte*>(values));
    EXPECT_EQ(to_f32(values[0]), 4);
    EXPECT_EQ(to_f32(values[2]), -0.125f);
    EXPECT_EQ(rows.scale(0), 2);
    EXPECT_EQ(rows.scale(1), 0.5f);
  }
}

TEST_F(StoredWeightTest, OfFp8WithOneScale) {
  for (const FileShape& shape : {FileShape{}, FileShape{1}}) {
    const Checkpoint checkpoint = write({tensor("a.weight", DType::f8_e4m3, {2, 3}, kF8Codes),
                                         tensor<float>("a.weight_scale", DType::f32, shape, {2})});
    EXPECT_EQ(row(*open_weight(checkpoint, "a", 2, 3), 1), (std::vector<float>{8, 0, -0.25f}));
  }
}

TEST_F(StoredWeightTest, OfFp8WithoutItsScale) {
  const Checkpoint without = write({tensor("a.weight", DType::f8_e4m3, {2, 3}, kF8Codes)});
  EXPECT_ERROR_WITH(open_weight(without, "a", 2, 3), "\"a.weight_scale\" is missing");
  const Checkpoint three = write({tensor("a.weight", DType::f8_e4m3, {2, 3}, kF8Codes),
                                  tensor<float>("a.weight_scale", DType::f32, {3}, {1, 1, 1})});
  EXPECT_ERROR_WITH(open_weight(three, "a", 2, 3), "\"a.weight_scale\" is F32 [3]");
  const Checkpoint integers = write({tensor("a.weight", DType::f8_e4m3, {2, 3}, kF8Codes),
                                     tensor<int32_t>("a.weight_scale", DType::i32, {1}, {1})});
  EXPECT_ERROR_WITH(open_weight(integers, "a", 2, 3), "is I32");
}

TEST_F(StoredWeightTest, ThatAreMissingOrOfAnotherShapeOrType) {
  const Checkpoint checkpoint = write(
      {rounded<float>(DType::f32, kValues), tensor<int32_t>("i.weight", DType::i32, {1, 1}, {7})});
  EXPECT_ERROR_WITH(open_weight(checkpoint, "b", 2, 3), "\"b.weight\" is missing");
  EXPECT_ERROR_WITH(open_weight(checkpoint, "a", 3, 2), "\"a.weight\" is [2, 3], expected [3, 2]");
  EXPECT_ERROR_WITH(open_weight(checkpoint, "i", 1, 1), "\"i.weight\" is I32");
  // As of packed types, whose shapes are others: the type is the reason.
  EXPECT_ERROR_WITH(open_weight(checkpoint, "i", 2, 3), "\"i.weight\" is I32");
}

TEST_F(StoredWeightTest, NoNumbersAreRefusedWhereTheyAreRead) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> values = kValues;
    values[4] = bad;
    const Tensor stored[] = {rounded<float>(DType::f32, values),
                             rounded<bf16_t>(DType::bf16, values),
                             rounded<f16_t>(DType::f16, values)};
    for (const Tensor& each : stored) {
      const Checkpoint checkpoint = write({each});
      const auto opened = open_weight(checkpoint, "a", 2, 3);
      const StoredWeight& rows = *opened;
      for (const DType to : {DType::f32, DType::bf16}) {
        EXPECT_EQ(row(rows, 0, to), kFirstRow);
        EXPECT_ERROR_WITH(row(rows, 1, to), "\"a.weight\" holds a NaN or an infinity in row 1");
      }
    }
  }
}

TEST_F(StoredWeightTest, NoNumbersInFp8OrInItsScale) {
  std::vector<uint8_t> codes = kF8Codes;
  codes[0] = 0x7f;
  const Checkpoint in_codes = write({tensor("a.weight", DType::f8_e4m3, {2, 3}, codes),
                                     tensor<float>("a.weight_scale", DType::f32, {1}, {1})});
  EXPECT_ERROR_WITH(row(*open_weight(in_codes, "a", 2, 3), 0), "NaN");
  const Checkpoint in_scale = write({tensor("a.weight", DType::f8_e4m3, {2, 3}, kF8Codes),
                                     tensor<float>("a.weight_scale", DType::f32, {2}, {1, NAN})});
  EXPECT_EQ(row(*open_weight(in_scale, "a", 2, 3), 0), kFirstRow);
  EXPECT_ERROR_WITH(row(*open_weight(in_scale, "a", 2, 3), 1), "\"a.weight_scale\" holds a NaN");
  EXPECT_ERROR_WITH(open_weight(in_scale, "a", 2, 3)->scale(1), "\"a.weight_scale\" holds a NaN");
}

TEST_F(StoredWeightTest, VectorsAreReadAsF32) {
  for (const Tensor& each :
       {rounded<float>(DType::f32, kValues), rounded<bf16_t>(DType::bf16, kValues),
        rounded<f16_t>(DType::f16, kValues)}) {
    const Checkpoint checkpoint = write({each});
    std::vector<float> values(6);
    weights::read_vector(checkpoint, "a.weight", {2, 3}, values.data());
    EXPECT_EQ(values, kValues);
    EXPECT_ERROR_WITH(weights::read_vector(checkpoint, "a.weight", {6}, values.data()),
                      "is [2, 3], expected [6]");
    EXPECT_ERROR_WITH(weights::read_vector(checkpoint, "a.bias", {6}, values.data()),
                      "\"a.bias\" is missing");
  }
  std::vector<float> values(6);
  const Checkpoint integers = write({tensor<int32_t>("a.weight", DType::i32, {1}, {7})});
  EXPECT_ERROR_WITH(weights::read_vector(integers, "a.weight", {1}, values.data()), "I32");
  const Checkpoint infinite = write({tensor<float>("a.weight", DType::f32, {1}, {INFINITY})});
  EXPECT_ERROR_WITH(weights::read_vector(infinite, "a.weight", {1}, values.data()), "\"a.weight\"");
}

}  // namespace
}  // namespace octet::test
