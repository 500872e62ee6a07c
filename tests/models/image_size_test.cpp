#include "models/image_size.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "formats/error_message.h"

namespace octet::test {
namespace {

using models::check_image_size;
using models::kLongestSide;
using models::kMostPixels;
using models::nearest_image_size;
using models::parse_image_size;
using models::size_warning;
using models::SizeLimits;

TEST(ImageSize, Parses) {
  EXPECT_EQ(parse_image_size("1536x1024"), (PictureSize{1536, 1024}));
  EXPECT_EQ(parse_image_size("16X1"), (PictureSize{16, 1}));
  EXPECT_EQ(models::name_of(PictureSize{1536, 1024}), "1536x1024");
}

TEST(ImageSize, RefusesOtherTexts) {
  for (const char* text :
       {"", "x", "1024x", "x1024", "1024x1024x3", "1024 x 1024", "-16x16", "+16x16", "16.0x16",
        "0x16", "1e3x16", "0x10x16", "16x99999999999999", "a\x1bxb"}) {
    const std::string message = error_of([&] { parse_image_size(text); });
    EXPECT_TRUE(contains(message, "<width>x<height>")) << text << ": " << message;
    EXPECT_FALSE(contains(message, "\x1b"));
  }
}

TEST(ImageSize, TakesTheDocumentedSizes) {
  for (const char* text : {"1024x1024", "1536x1024", "1024x1536", "1920x1088", "2048x768",
                           "1024x1792", "1600x400", "256x256", "2048x2048", "1536x256"}) {
    EXPECT_NO_THROW(check_image_size(parse_image_size(text), SizeLimits())) << text;
    EXPECT_EQ(size_warning(parse_image_size(text), SizeLimits()), "");
    EXPECT_EQ(models::name_of(nearest_image_size(parse_image_size(text), SizeLimits())), text);
  }
}

TEST(ImageSize, RefusalsNameTheNearestSize) {
  const auto refusal = [](const char* text) {
    return error_of([&] { check_image_size(parse_image_size(text), SizeLimits()); });
  };
  EXPECT_EQ(refusal("1920x1080"),
            "image size: the height of 1920x1080 is not a multiple of 16; the nearest size is "
            "1920x1088");
  EXPECT_EQ(refusal("1000x1000"),
            "image size: the width of 1000x1000 is not a multiple of 16; the nearest size is "
            "1008x1008");
  EXPECT_EQ(
      refusal("100x2051"),
      "image size: the width of 100x2051 is not a multiple of 16; the nearest size is 96x2048");
  EXPECT_EQ(refusal("8208x16"),
            "image size: 8208x16 is too large, expected sides of at most 8192 and 16.8 million "
            "pixels in all; the nearest size is 8192x16");
  EXPECT_TRUE(contains(refusal("5000x5000"), "the nearest size is 4096x4096"));
  EXPECT_TRUE(contains(refusal("4112x4096"), "the nearest size is 4096x4096"));
  EXPECT_TRUE(contains(refusal("1000000x1"), "the nearest size is 8192x16"));
}

// The reference documents a range and does not enforce it.
TEST(ImageSize, SizesOutsideOfTheDocumentedRangeAreWarnedOf) {
  for (const char* text : {"128x512", "16x16", "4096x2160", "2064x2064", "2048x256", "256x1552"}) {
    EXPECT_NO_THROW(check_image_size(parse_image_size(text), SizeLimits())) << text;
  }
  EXPECT_EQ(size_warning({128, 512}, {.title = "Ideogram 4"}),
            "image size: 128x512 is smaller than what Ideogram 4 is documented for, sides of 256 "
            "to 2048 pixels and at most 6:1; the picture may be worse");
  EXPECT_TRUE(contains(size_warning({4096, 2160}, SizeLimits()), "is larger than"));
  EXPECT_TRUE(contains(size_warning({2048, 256}, SizeLimits()), "is longer than"));
}

TEST(ImageSize, TheNearestSizeIsTaken) {
  for (const SizeLimits& limits : {SizeLimits{}, SizeLimits{2}, SizeLimits{24}, SizeLimits{100}}) {
    for (int width = 1; width < 12'000; width += 137) {
      for (int height = 1; height < 12'000; height += 141) {
        const PictureSize nearest = nearest_image_size({width, height}, limits);
        EXPECT_NO_THROW(check_image_size(nearest, limits)) << width << "x" << height;
        const bool fits = width <= kLongestSide - 100 && height <= kLongestSide - 100 &&
                          (width + 100) * (height + 100) <= kMostPixels;
        if (!fits || width < limits.token_side || height < limits.token_side) continue;
        EXPECT_LE(std::abs(nearest.width - width), limits.token_side / 2);
        EXPECT_LE(std::abs(nearest.height - height), limits.token_side / 2);
      }
    }
  }
}

TEST(ImageSize, LimitsOfTestModels) {
  EXPECT_NO_THROW(check_image_size({16, 16}, {2, 2, 64, 6}));
  EXPECT_EQ(size_warning({16, 16}, {2, 2, 64, 6}), "");
  EXPECT_ERROR_WITH(check_image_size({17, 16}, {2, 2, 64, 6}), "multiple of 2");
}

}  // namespace
}  // namespace octet::test
