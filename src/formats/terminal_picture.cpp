#include "formats/terminal_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

constexpr int64_t kMostTerminalSide = 4096;

void check_terminal_image(const ImageView& rgb) {
  check_image(rgb, "terminal picture", kMostTerminalSide);
  check(rgb.channels == 3, "terminal picture: {} channels, expected 3", rgb.channels);
}

std::string base64(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t there = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < there ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) {
      text += j <= there ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

// Sixel has 256 colours at most: six levels of each channel, and what rounding to them loses goes
// on to the neighbours (Floyd and Steinberg).
constexpr int kLevels = 6;

std::vector<uint8_t> cube_colours(const ImageView& rgb) {
  const auto width = static_cast<size_t>(rgb.width), height = static_cast<size_t>(rgb.height);
  std::vector<uint8_t> colours(width * height);
  std::vector<float> error(3 * (width + 2), 0.0F), next = error;
  for (size_t y = 0; y < height; ++y) {
    std::fill(next.begin(), next.end(), 0.0F);
    for (size_t x = 0; x < width; ++x) {
      int colour = 0;
      for (size_t c = 0; c < 3; ++c) {
        const float wanted = std::clamp(
            static_cast<float>(rgb.pixels[3 * (y * width + x) + c]) + error[3 * (x + 1) + c], 0.0F,
            255.0F);
        const int level = static_cast<int>(wanted * (kLevels - 1) / 255.0F + 0.5F);
        const float lost = wanted - static_cast<float>(level * 255 / (kLevels - 1));
        error[3 * (x + 2) + c] += lost * 7 / 16;
        next[3 * x + c] += lost * 3 / 16;
        next[3 * (x + 1) + c] += lost * 5 / 16;
        next[3 * (x + 2) + c] += lost / 16;
        colour = colour * kLevels + level;
      }
      colours[y * width + x] = static_cast<uint8_t>(colour);
    }
    error.swap(next);
  }
  return colours;
}

void append_run(std::string& out, char sixel, size_t length) {
  if (length > 3) {
    out += fmt::format("!{}{}", length, sixel);
  } else {
    out.append(length, sixel);
  }
}

}  // namespace

std::string kitty_sequence(const ImageView& rgb, int rows) {
  check_terminal_image(rgb);
  constexpr size_t kChunk = 4096;
  // T: show at once; q=2: no answer; C=1: the cursor stays; i, p: in the place of the one before.
  std::string keys = fmt::format("a=T,f=24,s={},v={},r={},i=8,p=1,q=2,C=1,", rgb.width, rgb.height,
                                 std::max(rows, 1));
  const std::string data = base64(rgb.pixels);
  std::string out;
  for (size_t at = 0; at < data.size(); at += kChunk) {
    const bool is_last = at + kChunk >= data.size();
    out += fmt::format("\x1b_G{}m={};{}\x1b\\", keys, is_last ? 0 : 1,
                       std::string_view(data).substr(at, kChunk));
    keys.clear();
  }
  return out;
}

std::string sixel_sequence(const ImageView& rgb) {
  check_terminal_image(rgb);
  const auto width = static_cast<size_t>(rgb.width), height = static_cast<size_t>(rgb.height);
  const std::vector<uint8_t> colours = cube_colours(rgb);
  std::string out = fmt::format("\x1bPq\"1;1;{};{}", width, height);
  constexpr int kColours = kLevels * kLevels * kLevels, kPercent = 100 / (kLevels - 1);
  for (int colour = 0; colour < kColours; ++colour) {
    out += fmt::format("#{};2;{};{};{}", colour, colour / (kLevels * kLevels) * kPercent,
                       colour / kLevels % kLevels * kPercent, colour % kLevels * kPercent);
  }
  for (size_t top = 0; top < height; top += 6) {
    const size_t rows = std::min<size_t>(6, height - top);
    std::array<bool, kColours> is_used = {};
    for (size_t i = top * width; i < (top + rows) * width; ++i) is_used[colours[i]] = true;
    for (int colour = 0; colour < kColours; ++colour) {
      if (!is_used[static_cast<size_t>(colour)]) continue;
      out += fmt::format("#{}", colour);
      char last = 0;
      size_t length = 0;
      for (size_t x = 0; x < width; ++x) {
        int bits = 0;
        for (size_t y = 0; y < rows; ++y) {
          if (colours[(top + y) * width + x] == colour) bits |= 1 << y;
        }
        const char sixel = static_cast<char>(63 + bits);
        if (length > 0 && sixel != last) append_run(out, last, std::exchange(length, 0));
        last = sixel;
        ++length;
      }
      append_run(out, last, length);
      out += '$';  // back to the left, for the next colour
    }
    out += '-';
  }
  return out + "\x1b\\";
}

std::vector<uint8_t> scaled(const ImageView& rgb, int64_t width, int64_t height) {
  check_image(rgb, "picture");
  check(rgb.channels == 3 && width >= 1 && height >= 1 && width <= kMostTerminalSide &&
            height <= kMostTerminalSide,
        "picture: cannot be scaled to {} x {} pixels, expected sides from 1 to {}", width, height,
        kMostTerminalSide);
  std::vector<uint8_t> made;
  made.reserve(static_cast<size_t>(3 * width * height));
  for (int64_t y = 0; y < height; ++y) {
    const int64_t top = y * rgb.height / height;
    const int64_t bottom = std::max(top + 1, (y + 1) * rgb.height / height);
    for (int64_t x = 0; x < width; ++x) {
      const int64_t left = x * rgb.width / width;
      const int64_t right = std::max(left + 1, (x + 1) * rgb.width / width);
      int64_t sums[3] = {};
      for (int64_t row = top; row < bottom; ++row) {
        for (int64_t column = left; column < right; ++column) {
          const auto pixel = static_cast<size_t>(3 * (row * rgb.width + column));
          for (size_t c = 0; c < 3; ++c) sums[c] += rgb.pixels[pixel + c];
        }
      }
      const int64_t count = (bottom - top) * (right - left);
      for (const int64_t sum : sums) made.push_back(static_cast<uint8_t>(sum / count));
    }
  }
  return made;
}

}  // namespace octet
