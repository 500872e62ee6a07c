#include "engine/picture_look.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace octet::engine {
namespace {

// A refusal card: how much is background, and where the rest lies.
constexpr double kCardShare = 0.80;     // of background, at least
constexpr double kCardHeight = 0.30;    // of the block of text, at most
constexpr double kCardOffCentre = 0.1;  // of its middle from the picture's, in either direction
constexpr double kCardAspect = 2;       // width over height, at least
constexpr int kCardStrokes = 20;        // in one row: a line of some twenty letters and more

struct Colour {
  int red = 0, green = 0, blue = 0;

  bool is_near(const Colour& other) const {
    return std::abs(red - other.red) <= kSameColour &&
           std::abs(green - other.green) <= kSameColour &&
           std::abs(blue - other.blue) <= kSameColour;
  }
};

Colour colour_at(const PixelView& picture, size_t pixel) {
  return {picture.rgb[3 * pixel], picture.rgb[3 * pixel + 1], picture.rgb[3 * pixel + 2]};
}

// The mean colour in the fullest cell of a coarse histogram.
Colour commonest_colour(const PixelView& picture, size_t pixels) {
  constexpr int kBits = 4;
  struct Cell {
    int64_t count = 0, red = 0, green = 0, blue = 0;
  };
  std::vector<Cell> cells(size_t{1} << (3 * kBits));
  for (size_t i = 0; i < pixels; ++i) {
    const Colour colour = colour_at(picture, i);
    const int at = ((colour.red >> (8 - kBits)) << (2 * kBits)) |
                   ((colour.green >> (8 - kBits)) << kBits) | (colour.blue >> (8 - kBits));
    Cell& cell = cells[static_cast<size_t>(at)];
    ++cell.count;
    cell.red += colour.red;
    cell.green += colour.green;
    cell.blue += colour.blue;
  }
  const Cell& fullest = *std::max_element(
      cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.count < b.count; });
  return {static_cast<int>(fullest.red / fullest.count),
          static_cast<int>(fullest.green / fullest.count),
          static_cast<int>(fullest.blue / fullest.count)};
}

// Of all pixels from their mean, over the three channels.
double deviation_of(const PixelView& picture, size_t pixels) {
  uint64_t sum[3] = {}, squares[3] = {};
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const uint64_t value = picture.rgb[3 * i + c];
      sum[c] += value;
      squares[c] += value * value;
    }
  }
  const auto count = static_cast<double>(pixels);
  double variance = 0;
  for (int c = 0; c < 3; ++c) {
    const double mean = static_cast<double>(sum[c]) / count;
    variance += static_cast<double>(squares[c]) / count - mean * mean;
  }
  return std::sqrt(std::max(0.0, variance / 3));
}

// The box around everything but the background, and the strokes in its busiest row.
struct Block {
  int left = 0, right = 0, top = 0, bottom = 0;  // inclusive
  int strokes = 0;
};

Block block_of(const PixelView& picture, const Colour& background) {
  Block block{.left = picture.width, .right = -1, .top = picture.height, .bottom = -1};
  for (int y = 0; y < picture.height; ++y) {
    int strokes = 0;
    bool before = false;
    for (int x = 0; x < picture.width; ++x) {
      const size_t row = static_cast<size_t>(y) * static_cast<size_t>(picture.width);
      const bool ink = !colour_at(picture, row + static_cast<size_t>(x)).is_near(background);
      if (ink && !before) ++strokes;
      before = ink;
      if (!ink) continue;
      block.left = std::min(block.left, x);
      block.right = std::max(block.right, x);
      block.top = std::min(block.top, y);
      block.bottom = std::max(block.bottom, y);
    }
    block.strokes = std::max(block.strokes, strokes);
  }
  return block;
}

bool looks_like_text_card(const Block& block, int width, int height) {
  const double across = block.right - block.left + 1, down = block.bottom - block.top + 1;
  const double off_x = std::abs((block.left + block.right + 1) / 2.0 - width / 2.0);
  const double off_y = std::abs((block.top + block.bottom + 1) / 2.0 - height / 2.0);
  return block.strokes >= kCardStrokes && down <= kCardHeight * height &&
         across >= kCardAspect * down && off_x <= kCardOffCentre * width &&
         off_y <= kCardOffCentre * height;
}

}  // namespace

PictureLook look_of(const PixelView& picture) {
  const size_t pixels = picture.rgb.size() / 3;
  if (pixels == 0) return PictureLook::ordinary;
  if (deviation_of(picture, pixels) < kConstantDeviation) return PictureLook::constant;
  const Colour background = commonest_colour(picture, pixels);
  size_t ink = 0;
  for (size_t i = 0; i < pixels; ++i) {
    if (!colour_at(picture, i).is_near(background)) ++ink;
  }
  const double share = 1 - static_cast<double>(ink) / static_cast<double>(pixels);
  // Text comes first: thin letters may leave more background than a constant picture has.
  if (share >= kCardShare && ink > 0 &&
      looks_like_text_card(block_of(picture, background), picture.width, picture.height)) {
    return PictureLook::refusal;
  }
  return share >= kConstantShare ? PictureLook::constant : PictureLook::ordinary;
}

}  // namespace octet::engine
