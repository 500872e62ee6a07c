// INT8 codes [rows, k] with a scale per row or one for all: what several dialects store, each under
// its own names.
#pragma once

#include <string>
#include <vector>

#include "weights/stored_weight.h"

namespace octet::weights {

struct Int8Layout {
  std::string codes;   // the tensor I8 [rows, k]
  std::string scales;  // see RowScales
  // Tensors of the weight that change nothing here, such as scales of static activations; those
  // that the checkpoint has are counted as used.
  std::vector<std::string> siblings;
  StoredTransform transform;
  // The file asks for a product in floating point: the codes are a source then, not native.
  bool full_precision = false;
};

class Int8Weight : public StoredWeight {
 public:
  // Throws Error, naming file and tensor, for what is missing, of another shape or type.
  Int8Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k,
             Int8Layout layout);

  void read_stored(int64_t row, std::byte* into) const override;
  float scale(int64_t row) const override;

 private:
  std::string scales_name_;
  std::span<const std::byte> codes_;
  RowScales scales_;
};

}  // namespace octet::weights
