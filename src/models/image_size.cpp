#include "models/image_size.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/invalid_request.h"
#include "formats/text.h"

namespace octet::models {
namespace {

// The nearest multiple, but at least one and at most kLongestSide; of two equally near ones the
// larger.
int nearest_side(int64_t side, int factor) {
  const int64_t rounded = (side + factor / 2) / factor * factor;
  return static_cast<int>(std::clamp<int64_t>(rounded, factor, kLongestSide / factor * factor));
}

int64_t pixels_of(PictureSize size) { return int64_t{size.width} * size.height; }

// False unless it is a number above 0 written in plain digits.
bool read_side(std::string_view text, int& side) {
  const char* const end = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), end, side);
  return status == std::errc() && stopped == end && side >= 1;
}

}  // namespace

std::string name_of(PictureSize size) { return fmt::format("{}x{}", size.width, size.height); }

PictureSize parse_image_size(std::string_view text) {
  PictureSize size;
  const size_t x = text.find_first_of("xX");
  if (x == text.npos && read_side(text, size.width)) return {size.width, size.width};
  check_value(x != text.npos && read_side(text.substr(0, x), size.width) &&
                  read_side(text.substr(x + 1), size.height),
              "size",
              "image size: {} is not a size, expected <width>x<height> in pixels such as "
              "1536x1024, or the side of a square",
              in_quotes(text));
  return size;
}

void check_image_size(PictureSize size, const SizeLimits& limits) {
  const int factor = limits.token_side;
  const auto remedy = [&] { return name_of(nearest_image_size(size, limits)); };
  check_value(std::min(size.width, size.height) >= 1, "size", "image size: {} has no pixels",
              name_of(size));
  check_value(
      std::max(size.width, size.height) <= kLongestSide && pixels_of(size) <= kMostPixels, "size",
      "image size: {} is too large, expected sides of at most {} and {:.1f} million pixels in all; "
      "the nearest size is {}",
      name_of(size), kLongestSide, kMostPixels * 1e-6, remedy());
  check_value(size.width % factor == 0 && size.height % factor == 0, "size",
              "image size: the {} of {} is not a multiple of {}; the nearest size is {}",
              size.width % factor != 0 ? "width" : "height", name_of(size), factor, remedy());
}

std::string size_warning(PictureSize size, const SizeLimits& limits) {
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  const char* const what = shorter < limits.smallest                   ? "smaller than"
                           : longer > limits.largest                   ? "larger than"
                           : longer > int64_t{shorter} * limits.aspect ? "longer than"
                                                                       : nullptr;
  if (what == nullptr) return "";
  return fmt::format(
      "image size: {} is {} what {} is documented for, sides of {} to {} pixels and at "
      "most {}:1; the picture may be worse",
      name_of(size), what, limits.title, limits.smallest, limits.largest, limits.aspect);
}

PictureSize nearest_image_size(PictureSize size, const SizeLimits& limits) {
  check(limits.token_side >= 1 && limits.token_side <= kLongestSide,
        "image size: tokens have a side of {} pixels, expected 1 to {}", limits.token_side,
        kLongestSide);
  const int factor = limits.token_side;
  const PictureSize nearest{nearest_side(size.width, factor), nearest_side(size.height, factor)};
  const double shrink = std::sqrt(kMostPixels / static_cast<double>(pixels_of(nearest)));
  if (shrink >= 1) return nearest;
  const auto shrunk = [&](int side) {
    return std::max(factor, static_cast<int>(side * shrink) / factor * factor);
  };
  const PictureSize least{shrunk(nearest.width), shrunk(nearest.height)};
  PictureSize most = least;  // rounding down may have left room for more
  for (const int width : {least.width, std::min(least.width + factor, nearest.width)}) {
    for (const int height : {least.height, std::min(least.height + factor, nearest.height)}) {
      const PictureSize larger{width, height};
      if (pixels_of(larger) <= kMostPixels && pixels_of(larger) > pixels_of(most)) most = larger;
    }
  }
  return most;
}

}  // namespace octet::models
