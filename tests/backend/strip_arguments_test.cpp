// Wrong arguments of the ops that take an image in strips; see model_arguments_test.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "formats/error_message.h"
#include "support.h"

namespace octet::test {
namespace {

// Enough for any view here. The sums read it.
alignas(64) std::byte pixels[4096];

TensorView image(int64_t rows, int64_t columns, DType type = DType::bf16) {
  return {pixels, type, {rows, columns}};
}
TensorView numbers(int64_t length, DType type = DType::f32) { return {pixels, type, {length}}; }

void expect_refused(const std::function<void(Backend&)>& call, const std::string& part) {
  EXPECT_ERROR_WITH(call(*make_ref_backend()), part);
}

TEST(StripArguments, OfGroupSums) {
  expect_refused([](Backend& b) { b.begin_group_sums(DType::i8, 6, 8); },
                 "group sums: of a I8 image");
  const auto add = [](int64_t rows, int64_t channels, DType type) {
    return [=](Backend& b) {
      GroupSums sums = b.begin_group_sums(DType::bf16, 6, 8);
      b.add_group_sums(sums, image(4, 8));
      b.add_group_sums(sums, image(rows, channels, type));
    };
  };
  expect_refused(add(3, 8, DType::bf16), "x is [3, 8], expected 8 channels and at most 2 rows");
  expect_refused(add(2, 4, DType::bf16), "x is [2, 4], expected 8 channels");
  expect_refused(add(2, 8, DType::f32), "group sums: x is F32");
  const auto norm = [](int64_t rows, int64_t channels) {
    return [=](Backend& b) {
      GroupSums sums = b.begin_group_sums(DType::bf16, rows, channels);
      b.add_group_sums(sums, image(4, channels));
      GroupNorm how{.groups = 2, .weight = numbers(8), .bias = numbers(8)};
      how.image = &sums;
      b.group_norm(image(4, 8), how, image(4, 8));
    };
  };
  expect_refused(norm(6, 8), "group_norm: 4 of the 6 rows of the image were added, expected all");
  expect_refused(norm(4, 16), "x is BF16 with 8 channels, and the image is BF16 with 16");
}

TEST(StripArguments, OfAConvolution) {
  const auto strip = [](int64_t x_rows, int64_t out_rows, ConvArgs::Strip at) {
    return [=](Backend& b) {
      b.conv2d({.x = image(x_rows, 4),
                .weight = image(5, 36),
                .bias = numbers(5, DType::bf16),
                .out = image(out_rows, 5),
                .height = 4,
                .width = 3,
                .kernel = 3,
                .strip = at});
    };
  };
  expect_refused(strip(12, 4, {.first = 9}),
                 "a strip of 4 pixels from pixel 9 on, of an image of 4");
  expect_refused(strip(12, 3, {.first = -1}), "from pixel -1 on");
  expect_refused(strip(6, 3, {.first = 6, .x_first = 6}),
                 "x has 6 pixels from 6 on, expected the 9 from 3 on, of which the strip is made");
  expect_refused(strip(8, 3, {.first = 6, .x_first = 3}),
                 "x has 8 pixels from 3 on, expected the 9");
}

}  // namespace
}  // namespace octet::test
