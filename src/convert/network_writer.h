// Writes the weights of one network into a file that may have been begun by an earlier run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "convert/quantize_plan.h"
#include "formats/resumable_safetensors.h"

namespace octet::convert {

// Whether smoothing factors go into other weights, because the dialect has no word for them.
bool folds_smoothing(const QuantizeOptions& options);

class NetworkWriter {
 public:
  // `protected_modules` are large ones that stay in floating point. All of these outlive the
  // writer.
  NetworkWriter(Backend& backend, const NetworkPlan& plan, const QuantizeOptions& options,
                const std::set<std::string>& protected_modules, quant::ChunkLimit limit);

  // Everything that is written, added to `tensors`.
  void declare(std::vector<TensorDeclaration>& tensors) const;

  // What the file has already is not written again. Returns the bytes of the source.
  uint64_t write(ResumableSafetensors& file, const PlannedModule& module);
  void write(ResumableSafetensors& file, const PlannedVector& vector);

 private:
  bool is_int8(const PlannedModule& module) const;
  DType float_type(const PlannedModule& module, const weights::StoredParts& parts) const;
  DType with_room(DType dtype) const;
  void write_int8(ResumableSafetensors& file, const PlannedModule& module,
                  const quant::WeightRows& rows);
  void write_float(ResumableSafetensors& file, const PlannedModule& module,
                   const quant::WeightRows& rows, DType dtype);

  Backend& backend_;
  const NetworkPlan& plan_;
  const QuantizeOptions& options_;
  const std::set<std::string>& protected_modules_;
  quant::ChunkLimit limit_;
  std::string prefix_;  // before its names in the file
  bool folds_;
  Smoothing smoothing_;
};

}  // namespace octet::convert
