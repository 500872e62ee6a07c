// tensor: types, conversions, shapes, buffers.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace octet {
namespace {

TEST(DTypeTest, NamesGoBothWays) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  }
  EXPECT_FALSE(dtype_from_name("F7").has_value());
  EXPECT_EQ(bits_of(DType::f4), 4);
}

// All 65536 bit patterns survive widening and narrowing.
TEST(DTypeTest, SixteenBitFloatsRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16_t b{static_cast<uint16_t>(bits)};
    if (!std::isnan(to_f32(b))) {
      EXPECT_EQ(from_f32<bf16_t>(to_f32(b)).bits, bits);
    }
    const f16_t h{static_cast<uint16_t>(bits)};
    if (!std::isnan(to_f32(h))) {
      EXPECT_EQ(from_f32<f16_t>(to_f32(h)).bits, bits);
    }
  }
}

// Between two neighbours: below the middle goes down, above goes up, the middle goes to even.
template <class T>
void check_rounding(uint16_t from, uint16_t to) {
  for (uint16_t bits = from; bits < to; ++bits) {
    const double low = to_f32(T{bits});
    const double high = to_f32(T{static_cast<uint16_t>(bits + 1)});
    const auto middle = static_cast<float>((low + high) / 2);
    const uint16_t even = bits % 2 == 0 ? bits : static_cast<uint16_t>(bits + 1);
    ASSERT_EQ(from_f32<T>(middle).bits, even);
    ASSERT_EQ(from_f32<T>(std::nextafter(middle, 0.0f)).bits, bits);
    const float above = std::nextafter(middle, std::numeric_limits<float>::infinity());
    ASSERT_EQ(from_f32<T>(above).bits, bits + 1);
    ASSERT_EQ(from_f32<T>(-middle).bits, even | 0x8000);
  }
}

TEST(DTypeTest, NarrowingRoundsToNearestEven) {
  check_rounding<f16_t>(0, 0x7bfe);
  check_rounding<bf16_t>(0x80, 0x7f7e);  // above the f32 subnormals, whose middles are exact too
}

TEST(DTypeTest, NarrowingOverflowsToInfinityAndKeepsNan) {
  EXPECT_EQ(from_f32<f16_t>(65519.0f).bits, 0x7bff);
  EXPECT_EQ(from_f32<f16_t>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(from_f32<f16_t>(-1e30f).bits, 0xfc00);
  EXPECT_EQ(from_f32<bf16_t>(std::numeric_limits<float>::max()).bits, 0x7f80);
  float nan = 0;
  const uint32_t payload = 0x7f800001u;  // rounding its bits would give infinity
  std::memcpy(&nan, &payload, sizeof(nan));
  EXPECT_EQ(from_f32<bf16_t>(nan).bits, 0x7fc0);
  EXPECT_EQ(from_f32<f16_t>(nan).bits, 0x7e00);
}

TEST(DTypeTest, Fp8Values) {
  EXPECT_EQ(f8_e4m3_to_f32(0x7e), 448.0f);
  EXPECT_EQ(f8_e4m3_to_f32(0x01), 0x1p-9f);
  EXPECT_EQ(f8_e4m3_to_f32(0xb8), -1.0f);
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0xff)));
}

TEST(TensorTest, ShapesAndSizes) {
  const Shape shape{3, 4, 5};
  EXPECT_EQ(shape.elements(), 60);
  EXPECT_EQ(shape.to_string(), "[3, 4, 5]");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(bytes_of(DType::bf16, shape), 120u);
  EXPECT_EQ(bytes_of(DType::f4, {2, 3}), 3u);
  EXPECT_THROW(bytes_of(DType::f4, {3}), Error);
  EXPECT_THROW(bytes_of(DType::f32, {int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7}), Error);
  EXPECT_THROW((Shape{-1}), Error);
}

TEST(TensorTest, BuffersOwnAndViewsStayInside) {
  int released = 0;
  std::byte memory[64];
  {
    Buffer first(memory, sizeof(memory), [&](std::byte*) { ++released; });
    Buffer second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT: a moved-from buffer is empty, by contract
    EXPECT_EQ(second.view(DType::f32, {4, 4}).strides, (Shape{4, 1}));
    EXPECT_THROW(second.view(DType::f32, {4, 4}, 4), Error);
    EXPECT_THROW(second.view(DType::f32, {17}), Error);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(allocate_host(10).data()) % 64, 0u);
}

}  // namespace
}  // namespace octet
