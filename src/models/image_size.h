// The size of a picture: how users write it, and which sizes a model takes.
#pragma once

#include <string>
#include <string_view>

#include "octet/picture.h"

namespace octet::models {

// Only the first is a property of a network. The others are the range that its makers document and
// do not enforce.
struct SizeLimits {
  int token_side = 16;  // pixels of one token: both sides are multiples of it
  int smallest = 256;   // per side
  int largest = 2048;
  int aspect = 6;  // the longer side is at most this many times the shorter
  std::string_view title = "the model";
};

// Four times the documented side, and four times the pixels of the largest documented picture.
inline constexpr int kLongestSide = 8192;
inline constexpr int kMostPixels = 4096 * 4096;

std::string name_of(PictureSize size);  // "1536x1024"

// "<width>x<height>", or the side of a square; throws InvalidRequest for anything else.
PictureSize parse_image_size(std::string_view text);

// Throws InvalidRequest when the model cannot make the size, with the nearest one that it can.
void check_image_size(PictureSize size, const SizeLimits& limits);

// In which way the size lies outside of the documented range, in one sentence; empty within.
std::string size_warning(PictureSize size, const SizeLimits& limits);

// Both sides rounded to multiples; smaller and of the same shape where the picture is too large.
PictureSize nearest_image_size(PictureSize size, const SizeLimits& limits);

}  // namespace octet::models
