// The size of a picture: how users write it, and which sizes a model takes.
#pragma once

#include <string>
#include <string_view>

namespace octet::models {

struct ImageSize {
  int width = 0;  // pixels
  int height = 0;
  bool operator==(const ImageSize&) const = default;
};

// The limits of Ideogram 4; models for tests have smaller ones. Only the first is a property of the
// network. The others are the range that Ideogram documents and does not enforce.
struct SizeLimits {
  int token_side = 16;  // pixels of one token: both sides are multiples of it
  int smallest = 256;   // per side
  int largest = 2048;
  int aspect = 6;  // the longer side is at most this many times the shorter
};

// Four times the documented side, and four times the pixels of the largest documented picture.
inline constexpr int kLongestSide = 8192;
inline constexpr int kMostPixels = 4096 * 4096;

std::string name_of(ImageSize size);  // "1536x1024"

// "<width>x<height>", or the side of a square; throws InvalidRequest for anything else.
ImageSize parse_image_size(std::string_view text);

// Throws InvalidRequest when the model cannot make the size, with the nearest one that it can.
void check_image_size(ImageSize size, const SizeLimits& limits = {});

// In which way the size lies outside of the documented range, in one sentence; empty within.
std::string size_warning(ImageSize size, const SizeLimits& limits = {});

// Both sides rounded to multiples; smaller and of the same shape where the picture is too large.
ImageSize nearest_image_size(ImageSize size, const SizeLimits& limits = {});

}  // namespace octet::models
