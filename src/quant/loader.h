// From a checkpoint into a backend's memory, one weight at a time.
//
// Large linears are quantized on the way, by the backend itself; the other weights are converted
// to the type of the activations. Nothing of a checkpoint is kept in host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "formats/checkpoint.h"
#include "nn/weights.h"
#include "quant/fingerprint.h"
#include "quant/stored_rows.h"

namespace octet::quant {

struct LoadOptions {
  DType dtype = DType::bf16;  // of activations, and of weights that are not INT8
  bool int8 = true;           // large linears
  std::string prefix;         // before every name in the checkpoint
  // Told the bytes of the checkpoint that were read, after each tensor; may throw to stop.
  std::function<void(uint64_t)> progress;
};

// Whether a checkpoint has everything that is asked for, in the right shapes: no data is read.
class CheckpointCheck : public nn::WeightVisitor {
 public:
  CheckpointCheck(const Checkpoint& checkpoint, std::string prefix)
      : checkpoint_(checkpoint), prefix_(std::move(prefix)) {}

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv& into, const nn::ConvSpec& spec) override;
  void vector(nn::Vector& into, const std::string& name, int64_t length) override;
  void table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) override;

  uint64_t bytes() const { return bytes_; }  // of the checkpoint that will be read

 private:
  void count(const std::string& name, const FileShape& shape);
  void count(const StoredRows& rows);

  const Checkpoint& checkpoint_;
  std::string prefix_;
  uint64_t bytes_ = 0;
};

class Loader : public nn::WeightVisitor {
 public:
  Loader(const Checkpoint& checkpoint, Backend& backend, ThreadPool& pool, LoadOptions options)
      : checkpoint_(checkpoint), backend_(backend), pool_(pool), options_(std::move(options)) {}

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv& into, const nn::ConvSpec& spec) override;
  void vector(nn::Vector& into, const std::string& name, int64_t length) override;
  void table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) override;

  // Of everything that was loaded so far.
  const Fingerprint& fingerprint() const { return fingerprint_; }

 private:
  void load_int8(nn::Linear& into, const nn::LinearSpec& spec,
                 const std::vector<StoredRows>& parts);
  Buffer load_plain(const std::vector<StoredRows>& parts);
  // F32 [length], of parts that follow one another; empty without a bias.
  std::vector<float> load_bias(const nn::LinearSpec& spec,
                               const std::vector<nn::LinearSpec::Part>& layout);
  Buffer upload_vector(const std::vector<float>& values, DType dtype);
  void loaded(const StoredRows& rows);
  void loaded(const std::string& name, std::span<const std::byte> bytes);

  const Checkpoint& checkpoint_;
  Backend& backend_;
  ThreadPool& pool_;
  LoadOptions options_;
  Fingerprint fingerprint_;
};

}  // namespace octet::quant
