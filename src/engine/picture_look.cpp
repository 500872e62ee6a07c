#include "engine/picture_look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include "base/ranges.h"

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

// Counts and sums over pixels are whole numbers: the order of the threads does not matter.

// Pixels that have something in common.
struct Sum {
  uint64_t count = 0;
  std::array<uint64_t, 3> of = {};

  void add(const Sum& other) {
    count += other.count;
    for (size_t c = 0; c < 3; ++c) of[c] += other.of[c];
  }
};

// All pixels, their deviation, and a coarse histogram of their colours.
struct Tally {
  static constexpr int kBits = 4;
  Sum values, squares;
  std::array<uint32_t, size_t{1} << (3 * kBits)> cells = {};

  static size_t cell_of(const Colour& colour) {
    return static_cast<size_t>(((colour.red >> (8 - kBits)) << (2 * kBits)) |
                               ((colour.green >> (8 - kBits)) << kBits) |
                               (colour.blue >> (8 - kBits)));
  }

  void add(const Tally& other) {
    values.add(other.values);
    squares.add(other.squares);
    for (size_t i = 0; i < cells.size(); ++i) cells[i] += other.cells[i];
  }

  // From the mean, over the three channels.
  double deviation() const {
    const auto count = static_cast<double>(values.count);
    double variance = 0;
    for (size_t c = 0; c < 3; ++c) {
      const double mean = static_cast<double>(values.of[c]) / count;
      variance += static_cast<double>(squares.of[c]) / count - mean * mean;
    }
    return std::sqrt(std::max(0.0, variance / 3));
  }
};

// Calls add(into, pixel) for all pixels, by all threads.
template <class T, class Add>
T over_pixels(size_t pixels, ThreadPool* pool, const Add& add) {
  constexpr size_t kAtOnce = size_t{1} << 14;
  T total{};
  std::mutex mutex;
  for_ranges(pool, pixels, kAtOnce, [&](size_t first, size_t count) {
    T part{};
    for (size_t i = first; i < first + count; ++i) add(part, i);
    const std::lock_guard lock(mutex);
    total.add(part);
  });
  return total;
}

Tally tally_of(const PixelView& picture, size_t pixels, ThreadPool* pool) {
  return over_pixels<Tally>(pixels, pool, [&](Tally& tally, size_t i) {
    ++tally.values.count;
    for (size_t c = 0; c < 3; ++c) {
      const uint64_t value = picture.rgb[3 * i + c];
      tally.values.of[c] += value;
      tally.squares.of[c] += value * value;
    }
    ++tally.cells[Tally::cell_of(colour_at(picture, i))];
  });
}

template <class Belongs>
Sum sum_of(const PixelView& picture, size_t pixels, ThreadPool* pool, const Belongs& belongs) {
  return over_pixels<Sum>(pixels, pool, [&](Sum& sum, size_t i) {
    if (!belongs(colour_at(picture, i))) return;
    ++sum.count;
    for (size_t c = 0; c < 3; ++c) sum.of[c] += picture.rgb[3 * i + c];
  });
}

// The mean colour in the fullest cell.
Colour commonest_colour(const PixelView& picture, size_t pixels, const Tally& tally,
                        ThreadPool* pool) {
  const auto fullest =
      static_cast<size_t>(std::ranges::max_element(tally.cells) - tally.cells.begin());
  const Sum sum = sum_of(picture, pixels, pool,
                         [&](const Colour& colour) { return Tally::cell_of(colour) == fullest; });
  const auto mean = [&](size_t channel) { return static_cast<int>(sum.of[channel] / sum.count); };
  return {mean(0), mean(1), mean(2)};
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

PictureLook look_of(const PixelView& picture, ThreadPool* pool) {
  const size_t pixels = picture.rgb.size() / 3;
  if (pixels == 0) return PictureLook::ordinary;
  const Tally tally = tally_of(picture, pixels, pool);
  if (tally.deviation() < kConstantDeviation) return PictureLook::constant;
  const Colour background = commonest_colour(picture, pixels, tally, pool);
  const auto is_paper = [&](const Colour& colour) { return colour.is_near(background); };
  const size_t ink = pixels - sum_of(picture, pixels, pool, is_paper).count;
  const double share = 1 - static_cast<double>(ink) / static_cast<double>(pixels);
  // Text comes first: thin letters may leave more background than a constant picture has.
  if (share >= kCardShare && ink > 0 &&
      looks_like_text_card(block_of(picture, background), picture.width, picture.height)) {
    return PictureLook::refusal;
  }
  return share >= kConstantShare ? PictureLook::constant : PictureLook::ordinary;
}

}  // namespace octet::engine
