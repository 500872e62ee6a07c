#include "pipeline/image_size.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "formats/text.h"

namespace octet::pipeline {
namespace {

constexpr int kLongestSide = 1'000'000;  // of what is read; keeps products of sides in 64 bits

int round_up(int value, int factor) { return (value + factor - 1) / factor * factor; }
int round_down(int value, int factor) { return value / factor * factor; }

// The nearest multiple within the limits; of two equally near ones the larger.
int nearest_side(int side, const SizeLimits& limits) {
  const int factor = limits.token_side;
  const int bounded = std::clamp(side, limits.smallest, limits.largest);
  return std::clamp(round_down(bounded + factor / 2, factor), round_up(limits.smallest, factor),
                    round_down(limits.largest, factor));
}

bool is_too_long(ImageSize size, int aspect) {
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  return longer > static_cast<int64_t>(shorter) * aspect;
}

// False when it is no number from 1 to kLongestSide written in plain digits.
bool read_side(std::string_view text, int& side) {
  const char* const end = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), end, side);
  return status == std::errc() && stopped == end && side >= 1 && side <= kLongestSide;
}

}  // namespace

std::string name_of(ImageSize size) { return fmt::format("{}x{}", size.width, size.height); }

ImageSize parse_image_size(std::string_view text) {
  ImageSize size;
  const size_t x = text.find_first_of("xX");
  if (x == text.npos && read_side(text, size.width)) return {size.width, size.width};
  check(x != text.npos && read_side(text.substr(0, x), size.width) &&
            read_side(text.substr(x + 1), size.height),
        "image size: {} is no size, expected <width>x<height> in pixels such as 1536x1024, or one "
        "side",
        in_quotes(text));
  return size;
}

void check_image_size(ImageSize size, const SizeLimits& limits) {
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  const int factor = limits.token_side;
  const auto remedy = [&] { return name_of(nearest_image_size(size, limits)); };
  check(shorter >= limits.smallest && longer <= limits.largest,
        "image size: {} has a side of {} pixels, expected {} to {}; the nearest size is {}",
        name_of(size), shorter < limits.smallest ? shorter : longer, limits.smallest,
        limits.largest, remedy());
  check(size.width % factor == 0 && size.height % factor == 0,
        "image size: the {} of {} is no multiple of {}; the nearest size is {}",
        size.width % factor != 0 ? "width" : "height", name_of(size), factor, remedy());
  check(!is_too_long(size, limits.aspect),
        "image size: {} is longer than {}:1; the nearest size is {}", name_of(size), limits.aspect,
        remedy());
}

ImageSize nearest_image_size(ImageSize size, const SizeLimits& limits) {
  check(limits.token_side >= 1 && limits.smallest >= 1 && limits.aspect >= 1 &&
            round_up(limits.smallest, limits.token_side) <=
                round_down(limits.largest, limits.token_side),
        "image size: no multiple of {} lies in {} to {}", limits.token_side, limits.smallest,
        limits.largest);
  ImageSize nearest{nearest_side(size.width, limits), nearest_side(size.height, limits)};
  // Widening the shorter side changes fewer pixels of the request than cutting the longer one.
  if (is_too_long(nearest, limits.aspect)) {
    int& shorter = nearest.width < nearest.height ? nearest.width : nearest.height;
    const int longer = std::max(nearest.width, nearest.height);
    shorter = round_up((longer + limits.aspect - 1) / limits.aspect, limits.token_side);
  }
  return nearest;
}

}  // namespace octet::pipeline
