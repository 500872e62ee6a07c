// Follows decode() line by line.
#include "models/flux2_vae/decode_plan.h"

#include <algorithm>

#include "base/error.h"

namespace octet::flux2_vae {

DecodePlan::Block DecodePlan::resnets(ConvShape shape, int64_t inputs, int64_t count) const {
  const int64_t channels = shape.channels, pixels = shape.pixels();
  Block block;
  const auto pass = [&](int64_t of, int64_t kernel, bool adds) {
    shape.channels = of;
    shape.kernel = kernel;
    block.passes.push_back({shape, adds});
  };
  // The first resnet has x, its shortcut, what comes out of conv1; then each has its own width.
  int64_t most = pixels * 3 * channels;
  if (inputs != channels) {
    most = std::max(most, pixels * (inputs + 2 * channels));
    pass(inputs, 1, false);
    pass(inputs, 3, false);
  }
  if (inputs == channels || count > 1) pass(channels, 3, false);
  pass(channels, 3, true);
  block.whole = bytes_of(shape.dtype, {most});
  return block;
}

// x, and four times as many pixels.
void DecodePlan::double_pixels(Block& block, ConvShape& shape) const {
  block.whole =
      std::max<uint64_t>(block.whole, bytes_of(shape.dtype, {shape.pixels() * 5 * shape.channels}));
  shape.height *= 2;
  shape.width *= 2;
  block.passes.push_back({.shape = shape});
  block.passes.back().shape.doubled = true;
}

DecodePlan::DecodePlan(const VaeConfig& config, int64_t height, int64_t width, DType dtype)
    : height_(height), width_(width) {
  const int64_t latent = height * width, widest = config.channels.back();
  const auto bytes = [&](int64_t elements) -> uint64_t { return bytes_of(dtype, {elements}); };
  latent_bytes_ = bytes(latent * config.latent_channels);
  // conv_in, behind post_quant; a resnet, x among its images; x, its norm or a result, q, k, v.
  middle_ = bytes(latent * std::max({config.latent_channels + widest, 3 * widest,
                                     config.mid_attention ? 5 * widest : 0}));
  ConvShape shape{
      .height = height, .width = width, .channels = widest, .kernel = 3, .dtype = dtype};
  for (size_t level = config.channels.size(); level-- > 0;) {
    const int64_t inputs = shape.channels;
    shape.channels = shape.out_channels = config.channels[level];
    blocks_.push_back(resnets(shape, inputs, config.resnets));
    if (level > 0) double_pixels(blocks_.back(), shape);
  }
  constexpr int64_t kColours = 3;
  Block out{.whole = bytes(shape.pixels() * (shape.channels + kColours))};
  shape.out_channels = kColours;
  out.passes.push_back({.shape = shape});
  blocks_.push_back(std::move(out));
}

uint64_t DecodePlan::bytes_when(size_t whole_blocks, bool exact) const {
  uint64_t most = middle_;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (i < whole_blocks) {
      most = std::max(most, blocks_[i].whole);
      continue;
    }
    for (const StripPass& pass : blocks_[i].passes) {
      most = std::max(most, pass.bytes(pass.least_pixels(exact)));
    }
  }
  return most + latent_bytes_;
}

uint64_t DecodePlan::whole_bytes() const { return bytes_when(blocks_.size(), true); }

uint64_t DecodePlan::least_bytes(bool exact) const {
  uint64_t least = whole_bytes();
  for (size_t whole = 0; whole < blocks_.size(); ++whole) {
    least = std::min(least, bytes_when(whole, exact));
  }
  return least;
}

size_t DecodePlan::whole_blocks(uint64_t bound) const {
  if (bound == 0) return blocks_.size();
  for (const bool exact : {true, false}) {
    for (size_t whole = blocks_.size() + 1; whole-- > 0;) {
      if (bytes_when(whole, exact) <= bound) return whole;
    }
  }
  fail(
      "vae: a latent of {} x {} takes at least {} bytes for images of {} pixels, and {} are "
      "allowed; allow more memory, or make a smaller picture",
      height_, width_, least_bytes(false), blocks_.back().passes.front().shape.pixels(), bound);
}

uint64_t image_bytes(const VaeConfig& config, int64_t height, int64_t width, DType dtype) {
  return DecodePlan(config, height, width, dtype).whole_bytes();
}

BytesInStrips bytes_in_strips(const VaeConfig& config, int64_t height, int64_t width, DType dtype) {
  const DecodePlan plan(config, height, width, dtype);
  return {.least = plan.least_bytes(false), .exact = plan.least_bytes(true)};
}

}  // namespace octet::flux2_vae
