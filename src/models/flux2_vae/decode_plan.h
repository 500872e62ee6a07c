// How much of the decoder runs on whole images within a bound, and what images take.
#pragma once

#include <cstdint>
#include <vector>

#include "models/flux2_vae/strips.h"

namespace octet::flux2_vae {

class DecodePlan {
 public:
  DecodePlan(const VaeConfig& config, int64_t height, int64_t width, DType dtype);

  uint64_t latent_bytes() const { return latent_bytes_; }  // among all of these
  uint64_t whole_bytes() const;
  // The smallest bound; `exact`: with the bits of whole images on every device.
  uint64_t least_bytes(bool exact) const;
  // How many of the up blocks, and after them the output, have whole images: as many as fit. Throws
  // Error for a bound below least_bytes(false); 0 is none.
  size_t whole_blocks(uint64_t bound) const;

 private:
  // What is decoded between two progress reports: an up block, or the output.
  struct Block {
    uint64_t whole = 0;
    std::vector<StripPass> passes;
  };
  Block resnets(ConvShape shape, int64_t inputs, int64_t count) const;
  void double_pixels(Block& block, ConvShape& shape) const;
  uint64_t bytes_when(size_t whole_blocks, bool exact) const;

  int64_t height_, width_;  // of the latent
  uint64_t latent_bytes_ = 0;
  uint64_t middle_ = 0;  // always whole: its attention has all pixels
  std::vector<Block> blocks_;
};

}  // namespace octet::flux2_vae
