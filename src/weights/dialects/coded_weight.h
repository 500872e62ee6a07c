// Codes of 8 bits [rows, k], INT8 or FP8 (E4M3), with a scale per row or one for all: what several
// dialects store, each under its own names.
#pragma once

#include <string>
#include <vector>

#include "weights/stored_weight.h"

namespace octet::weights {

struct CodedLayout {
  std::string codes;   // the tensor [rows, k]
  std::string scales;  // see RowScales
  // Tensors of the weight that change nothing here, such as scales of static activations; those
  // that the checkpoint has are counted as used.
  std::vector<std::string> siblings = {};
  StoredTransform transform = {};
  // The file asks for a product in floating point: INT8 codes are a source then, not native.
  bool full_precision = false;
};

class CodedWeight : public StoredWeight {
 public:
  // `type`: I8 or F8_E4M3. Throws Error, naming file and tensor, for what is missing, of another
  // shape or type.
  CodedWeight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k,
              DType type, CodedLayout layout);

  void read_stored(int64_t row, std::byte* into) const override;

 private:
  DType type_;
  std::string codes_name_;
  std::span<const std::byte> codes_;
};

}  // namespace octet::weights
