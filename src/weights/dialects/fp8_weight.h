// FP8 (E4M3) codes [rows, k] with a scale per row or one for all: of the official files, of
// ComfyUI's and of others, each under its own names.
#pragma once

#include <string>
#include <vector>

#include "weights/stored_weight.h"

namespace octet::weights {

struct Fp8Layout {
  std::string codes;                  // the tensor F8_E4M3 [rows, k]
  std::string scales;                 // see RowScales
  std::vector<std::string> siblings;  // as in Int8Layout
  StoredTransform transform;
};

class Fp8Weight : public StoredWeight {
 public:
  // Throws Error, naming file and tensor, for what is missing, of another shape or type.
  Fp8Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k,
            Fp8Layout layout);

  void read_stored(int64_t row, std::byte* into) const override;
  float scale(int64_t row) const override;

 private:
  std::string codes_name_, scales_name_;
  std::span<const std::byte> codes_;
  RowScales scales_;
};

}  // namespace octet::weights
