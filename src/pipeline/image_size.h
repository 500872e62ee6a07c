// The size of a picture: how users write it, and which sizes a model takes.
#pragma once

#include <string>
#include <string_view>

namespace octet::pipeline {

struct ImageSize {
  int width = 0;  // pixels
  int height = 0;
  bool operator==(const ImageSize&) const = default;
};

// The limits of Ideogram 4; models for tests have smaller ones.
struct SizeLimits {
  int token_side = 16;  // pixels of one token: both sides are multiples of it
  int smallest = 256;   // per side
  int largest = 2048;
  int aspect = 6;  // the longer side is at most this many times the shorter
};

std::string name_of(ImageSize size);  // "1536x1024"

// "<width>x<height>", or the side of a square; throws Error for anything else.
ImageSize parse_image_size(std::string_view text);

// Throws Error when the model does not take the size, with the nearest one that it takes.
void check_image_size(ImageSize size, const SizeLimits& limits = {});

// The size itself when the model takes it.
ImageSize nearest_image_size(ImageSize size, const SizeLimits& limits = {});

}  // namespace octet::pipeline
