// Pictures of one colour and cards of text, drawn here; and pictures that are neither.
#include "engine/picture_look.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace octet::test {
namespace {

class Canvas {
 public:
  Canvas(int width, int height, uint8_t level)
      : width_(width),
        height_(height),
        rgb_(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, level) {}

  void fill(int left, int top, int width, int height, uint8_t level) {
    for (int y = top; y < top + height; ++y) {
      for (int x = left; x < left + width; ++x) {
        for (int c = 0; c < 3; ++c) rgb_[static_cast<size_t>(3 * (y * width_ + x) + c)] = level;
      }
    }
  }

  // Strokes of two pixels, as letters have them.
  void line_of_text(int left, int top, int letters, int height, uint8_t level) {
    for (int i = 0; i < letters; ++i) {
      const int x = left + 6 * i;
      fill(x, top, 2, height, level);
      if (i % 2 == 0) fill(x, top + height / 2, 5, 1, level);
    }
  }

  void add_noise(int most) {
    std::mt19937 random(3);
    for (uint8_t& value : rgb_) {
      const int moved = value + static_cast<int>(random() % (2 * most + 1)) - most;
      value = static_cast<uint8_t>(std::min(255, std::max(0, moved)));
    }
  }

  PictureLook look() const {
    const PictureLook look = engine::look_of({rgb_, width_, height_});
    ThreadPool pool(3);
    EXPECT_EQ(engine::look_of({rgb_, width_, height_}, &pool), look);
    return look;
  }

 private:
  int width_, height_;
  std::vector<uint8_t> rgb_;
};

TEST(PictureLook, OneColour) {
  for (const uint8_t level : {0, 90, 255}) {
    Canvas canvas(64, 48, level);
    EXPECT_EQ(canvas.look(), PictureLook::constant);
    canvas.add_noise(2);
    EXPECT_EQ(canvas.look(), PictureLook::constant);
    canvas.fill(3, 4, 2, 2, static_cast<uint8_t>(level ^ 128));  // 0.1 % of the picture
    EXPECT_EQ(canvas.look(), PictureLook::constant);
  }
}

TEST(PictureLook, AShapeOnAFlatBackground) {
  Canvas canvas(256, 256, 230);
  canvas.fill(100, 100, 40, 40, 20);
  EXPECT_EQ(canvas.look(), PictureLook::ordinary);
}

TEST(PictureLook, ACardOfText) {
  for (const uint8_t paper : {0, 128, 255}) {
    Canvas canvas(256, 256, paper);
    canvas.line_of_text(128 - 90, 122, 30, 12, static_cast<uint8_t>(paper < 128 ? 255 : 40));
    EXPECT_EQ(canvas.look(), PictureLook::refusal);
    canvas.add_noise(3);
    EXPECT_EQ(canvas.look(), PictureLook::refusal);
  }
  Canvas large(1024, 1024, 17);
  large.line_of_text(512 - 90, 490, 30, 12, 240);
  large.line_of_text(512 - 60, 512, 20, 12, 240);
  EXPECT_EQ(large.look(), PictureLook::refusal);
}

TEST(PictureLook, TextElsewhereIsAPicture) {
  Canvas corner(256, 256, 255);
  corner.line_of_text(10, 10, 30, 12, 0);
  EXPECT_EQ(corner.look(), PictureLook::ordinary);
  Canvas word(256, 256, 255);  // a word of eight letters in the middle is what captions ask for
  word.line_of_text(104, 120, 8, 16, 0);
  EXPECT_NE(word.look(), PictureLook::refusal);
  Canvas page(256, 256, 255);
  for (int y = 20; y < 230; y += 20) page.line_of_text(38, y, 30, 12, 0);
  EXPECT_EQ(page.look(), PictureLook::ordinary);
}

TEST(PictureLook, GradientsAndNoise) {
  Canvas gradient(128, 128, 0);
  for (int x = 0; x < 128; ++x) gradient.fill(x, 0, 1, 128, static_cast<uint8_t>(2 * x));
  EXPECT_EQ(gradient.look(), PictureLook::ordinary);
  Canvas noise(64, 64, 128);
  noise.add_noise(100);
  EXPECT_EQ(noise.look(), PictureLook::ordinary);
}

TEST(PictureLook, Nothing) { EXPECT_EQ(engine::look_of({}), PictureLook::ordinary); }

}  // namespace
}  // namespace octet::test
