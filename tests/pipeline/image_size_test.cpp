#include "pipeline/image_size.h"

#include <gtest/gtest.h>

#include "formats/error_message.h"

namespace octet::test {
namespace {

using pipeline::check_image_size;
using pipeline::ImageSize;
using pipeline::nearest_image_size;
using pipeline::parse_image_size;
using pipeline::SizeLimits;

TEST(ImageSize, Parses) {
  EXPECT_EQ(parse_image_size("1536x1024"), (ImageSize{1536, 1024}));
  EXPECT_EQ(parse_image_size("16X1"), (ImageSize{16, 1}));
  EXPECT_EQ(name_of(ImageSize{1536, 1024}), "1536x1024");
}

TEST(ImageSize, RefusesOtherTexts) {
  for (const char* text :
       {"", "x", "1024x", "x1024", "1024x1024x3", "1024 x 1024", "-16x16", "+16x16",
        "16.0x16", "0x16", "1e3x16", "0x10x16", "16x99999999999999", "16x1000001", "a\x1bxb"}) {
    const std::string message = error_of([&] { parse_image_size(text); });
    EXPECT_TRUE(contains(message, "<width>x<height>")) << text << ": " << message;
    EXPECT_FALSE(contains(message, "\x1b"));
  }
}

TEST(ImageSize, TakesTheDocumentedSizes) {
  for (const char* text : {"1024x1024", "1536x1024", "1024x1536", "1920x1088", "2048x768",
                           "1024x1792", "1600x400", "256x256", "2048x2048", "1536x256"}) {
    EXPECT_NO_THROW(check_image_size(parse_image_size(text))) << text;
    EXPECT_EQ(name_of(nearest_image_size(parse_image_size(text))), text);
  }
}

TEST(ImageSize, RefusalsNameTheNearestSize) {
  const auto refusal = [](const char* text) {
    return error_of([&] { check_image_size(parse_image_size(text)); });
  };
  EXPECT_EQ(refusal("1920x1080"),
            "image size: the height of 1920x1080 is no multiple of 16; the nearest size is "
            "1920x1088");
  EXPECT_EQ(refusal("1000x1000"),
            "image size: the width of 1000x1000 is no multiple of 16; the nearest size is "
            "1008x1008");
  EXPECT_EQ(refusal("128x512"),
            "image size: 128x512 has a side of 128 pixels, expected 256 to 2048; the nearest size "
            "is 256x512");
  EXPECT_EQ(refusal("4096x2160"),
            "image size: 4096x2160 has a side of 4096 pixels, expected 256 to 2048; the nearest "
            "size is 2048x2048");
  EXPECT_EQ(refusal("2048x256"),
            "image size: 2048x256 is longer than 6:1; the nearest size is 2048x352");
  EXPECT_TRUE(contains(refusal("256x1552"), "longer than 6:1; the nearest size is 272x1552"));
  EXPECT_TRUE(contains(refusal("1000000x1"), "the nearest size is 2048x352"));
}

TEST(ImageSize, TheNearestSizeIsTaken) {
  for (const SizeLimits& limits : {SizeLimits{}, SizeLimits{2, 2, 64, 6},
                                   SizeLimits{24, 50, 500, 2}, SizeLimits{16, 16, 2048, 1}}) {
    for (int width = 1; width < 2300; width += 37) {
      for (int height = 1; height < 2300; height += 41) {
        const ImageSize nearest = nearest_image_size({width, height}, limits);
        EXPECT_NO_THROW(check_image_size(nearest, limits)) << width << "x" << height;
      }
    }
  }
}

TEST(ImageSize, LimitsOfTestModels) {
  EXPECT_NO_THROW(check_image_size({16, 16}, {2, 2, 64, 6}));
  EXPECT_ERROR_WITH(check_image_size({17, 16}, {2, 2, 64, 6}), "multiple of 2");
  EXPECT_ERROR_WITH(nearest_image_size({16, 16}, {16, 1, 15, 6}), "no multiple of 16");
}

}  // namespace
}  // namespace octet::test
