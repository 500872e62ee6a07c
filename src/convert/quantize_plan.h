// What quantize() writes of one network: its modules in the fused layout and its vectors, and
// the factors by which smoothing changes them; and the writing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convert/quantize.h"
#include "formats/resumable_safetensors.h"
#include "quant/smoothing.h"
#include "quant/weight_rows.h"
#include "weights/dialects/output_dialect.h"
#include "weights/loader.h"

namespace octet::convert {

struct PlannedModule {
  std::string name;    // in the fused layout
  std::string inputs;  // of its activations, in the statistics
  size_t linear = 0;   // of NetworkPlan::specs
  int64_t first = 0;   // its rows among those of the linear
  int64_t rows = 0, k = 0;
  bool large = false;
  bool is_linear = true;  // or an embedding
};

struct PlannedVector {
  std::string name;
  FileShape shape;
};

// Lists everything in the source that is written.
class NetworkPlan : public nn::WeightVisitor {
 public:
  NetworkPlan(const models::Family& family, const NetworkFiles& files);

  const weights::WeightSource& source() const { return network_->source(); }
  std::string config_text() const { return network_->config_text(); }
  const std::string& name() const { return name_; }   // "conditional"
  std::string prefix() const { return name_ + "."; }  // before its names, where there are several
  const std::vector<PlannedModule>& modules() const { return modules_; }
  const std::vector<PlannedVector>& vectors() const { return vectors_; }
  const std::vector<quant::SmoothGroup>& groups() const { return groups_; }

  weights::StoredParts open(const PlannedModule& module) const;
  static quant::WeightRows rows_of(const PlannedModule& module, const weights::StoredParts& parts) {
    return {parts, module.first, module.rows};
  }
  uint64_t source_bytes(bool large_only) const;

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv& into, const nn::ConvSpec& spec) override;
  void vector(nn::Vector& into, const std::string& name, int64_t length) override;
  void table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) override;

 private:
  std::string name_;
  std::unique_ptr<models::Network> network_;
  std::vector<nn::LinearSpec> specs_;
  std::vector<PlannedModule> modules_;
  std::vector<PlannedVector> vectors_;
  std::vector<quant::SmoothGroup> groups_;
};

// The rows that a linear saw: those of the statistics, or synthetic ones where there are none.
quant::LinearInputs inputs_of(const NetworkPlan& plan, const QuantizeOptions& options,
                              const std::string& linear, int64_t k);

// Factors of smoothing, made on demand: they need a pass over the weights of a group.
class Smoothing {
 public:
  // Factors are folded into others, as powers of two, in a dialect that cannot say them.
  Smoothing(ThreadPool& pool, const NetworkPlan& plan, const QuantizeOptions& options);

  bool folds() const { return folds_; }
  // By which the columns of a module are multiplied, [k]: ones where it cannot be smoothed.
  const std::vector<float>& columns(const std::string& module);
  // By which a row of a module is divided: 1 unless factors are folded there.
  float row_divisor(const std::string& module, int64_t row);
  // By which a vector is divided, or none.
  const std::vector<float>* divisors(const std::string& vector);

 private:
  const std::vector<float>& factors(size_t group);

  ThreadPool& pool_;
  const NetworkPlan& plan_;
  const QuantizeOptions& options_;
  bool folds_;
  std::vector<quant::SmoothGroup> groups_;
  std::map<std::string, size_t> group_of_module_, group_of_vector_, group_of_rows_;
  std::map<size_t, std::vector<float>> factors_;
  std::map<std::string, std::vector<float>> unsmoothed_;  // ones
};

// How a large module is written: what is done to activations, and to the rows of its weight.
struct ModuleTransform {
  weights::StoredTransform activations;  // as the dialect says it
  weights::StoredTransform weights;      // of Transform::smooth, what columns are multiplied by
};
ModuleTransform transform_of(const PlannedModule& module, const QuantizeOptions& options,
                             Smoothing& smoothing);

// Whether smoothing factors go into other weights, because the dialect has no word for them.
bool folds_smoothing(const QuantizeOptions& options);

// Writes the weights of one network into a file that may have been begun by an earlier run.
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
  // FP8 that stays so: of a linear that is not large, where readers of the file know it.
  std::optional<weights::KeptFp8> kept_fp8(const PlannedModule& module,
                                           const weights::StoredParts& parts) const;
  DType float_type(const PlannedModule& module, const weights::StoredParts& parts) const;
  DType with_room(DType dtype) const;
  void write_int8(ResumableSafetensors& file, const PlannedModule& module,
                  const quant::WeightRows& rows);
  void write_fp8(ResumableSafetensors& file, const PlannedModule& module,
                 const weights::StoredWeight& weight, const weights::KeptFp8& kept);
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
