// Images that are too large for a device: they wait in host memory, and a convolution takes them
// there strip by strip, each with the lines next to it.
#pragma once

#include <cstdint>

#include "models/flux2_vae/vae.h"

namespace octet::flux2_vae {

// One convolution over an image, with a norm before it or none.
struct StripPass {
  ConvShape shape;
  bool adds = false;  // another image to the result

  // Of images on the device, with so many pixels of the result at a time.
  uint64_t bytes(int64_t pixels) const;
  // The fewest at a time: of one line, or such that a GPU sums as it does for the whole image.
  int64_t least_pixels(bool exact) const {
    return std::min(exact ? shape.pixels_at_once() : shape.width, shape.pixels());
  }
  // The most that fit in so many bytes; at least those of one line do.
  int64_t pixels_within(uint64_t room) const;
};

struct HostImage {
  Buffer pixels;  // [height * width, channels], of the context's type
  int64_t height = 0, width = 0, channels = 0;
  GroupSums sums;  // of all pixels
};

class Strips {
 public:
  // `room`: bytes for images on the device.
  Strips(nn::Context& ctx, const VaeConfig& config, uint64_t room)
      : ctx_(ctx), config_(config), room_(room) {}

  HostImage download(const nn::Matrix& pixels, int64_t height, int64_t width);
  HostImage run_up_block(const UpBlock& block, HostImage x);
  // F32 [pixels, channels of the result]
  UnsetVector<float> run_out(const Norm& norm, const nn::Conv& conv, const HostImage& x);

 private:
  HostImage run_resnet(const Resnet& w, HostImage x);
  // conv(silu(norm(x))), or conv(x) without a norm, plus `added` if it is there.
  HostImage convolved(const HostImage& x, const Norm* norm, const nn::Conv& conv, bool doubled,
                      const HostImage* added);
  HostImage empty(int64_t height, int64_t width, int64_t channels);
  // Pixels from `first` on.
  void upload(const HostImage& x, int64_t first, const TensorView& to);

  nn::Context& ctx_;
  const VaeConfig& config_;
  uint64_t room_;
};

}  // namespace octet::flux2_vae
