// NVFP4 as ComfyUI stores it: E2M1 codes, two in a byte with the even element in the high nibble,
// times an E4M3 scale per 16 inputs, times one F32 scale for all.
#pragma once

#include <string>
#include <vector>

#include "weights/stored_weight.h"

namespace octet::weights {

class Nvfp4Weight : public StoredWeight {
 public:
  // <module>.weight U8, <module>.weight_scale F8_E4M3 (or U8 of the same bits) in the swizzled
  // order of tensor cores, <module>.weight_scale_2; `siblings` as in Int8Layout. Throws Error,
  // naming file and tensor, for what is missing, of another shape or type.
  Nvfp4Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k,
              std::span<const std::string> siblings, StoredTransform transform);

  void read_stored(int64_t row, std::byte* into) const override;
  float scale(int64_t row) const override;

 private:
  std::string block_scales_name_, scale_name_;
  std::span<const std::byte> codes_, block_scales_;
  int64_t row_bytes_ = 0;
  RowScales scale_;
};

}  // namespace octet::weights
