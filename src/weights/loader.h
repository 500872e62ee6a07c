// From a checkpoint into a backend's memory, one weight at a time.
//
// INT8 weights of a file go to the backend as they are, under the transform that the file asks for.
// Where a file has none, large linears are quantized on the way, by the backend itself. The other
// weights are converted to the type of the activations. Nothing of a checkpoint is kept in host
// memory, and nothing here waits for the device: reading one weight, moving the one before it and
// the device's work on those before that overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "nn/weights.h"
#include "weights/fingerprint.h"
#include "weights/weight_source.h"
#include "weights/weight_upload.h"

namespace octet::weights {

// A linear as a source stores it: the modules of one layout.
using StoredParts = std::vector<std::unique_ptr<StoredWeight>>;
// The layout in which the source has all modules of a linear. Throws Error when it has none.
const std::vector<nn::LinearSpec::Part>& layout_in(const WeightSource& source,
                                                   const nn::LinearSpec& spec);
StoredParts stored_parts(const WeightSource& source, const nn::LinearSpec& spec);

// Whether a weight runs in INT8, given that linears may.
bool runs_in_int8(const WeightSource& source, const nn::LinearSpec& spec,
                  const StoredWeight& weight);

// The weight of a convolution as backends take it, [out, taps, in]: files have [out, in, taps].
std::vector<float> taps_first(std::span<const float> stored, const nn::ConvSpec& spec);

struct LoadOptions {
  DType dtype = DType::bf16;  // of activations, and of weights that are not INT8
  bool int8 = true;           // linears that the file has in INT8, else the large ones
  bool fake = false;          // these are dequantized: Linears::fake
  // Of the linears that would be INT8, those that run in floating point nevertheless; empty: none.
  std::function<bool(const nn::LinearSpec&)> floating = {};
  // Weights quantized here are rotated within groups of this many channels, or fewer where
  // these do not divide k; 0: not at all. Codes of a file stay as they are.
  int64_t rotation = 0;
  bool fingerprint = true;  // costs a pass over all bytes
  // Told the bytes of the checkpoint that were read, after each tensor; may throw to stop.
  std::function<void(uint64_t)> progress;
  // Gets the codes [rows, k] and scales of each weight that was not INT8 in the file and is now,
  // with the fingerprint of what they were made from. Not together with a rotation, of which it is
  // told nothing.
  std::function<void(const StoredWeight& weight, const QTensor& codes,
                     const Fingerprint& made_from)>
      converted;
};

// Whether a checkpoint has everything that is needed, in the right shapes: no data is read.
class CheckpointCheck : public nn::WeightVisitor {
 public:
  explicit CheckpointCheck(const WeightSource& source) : source_(source) {}

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv& into, const nn::ConvSpec& spec) override;
  void vector(nn::Vector& into, const std::string& name, int64_t length) override;
  void table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) override;

  uint64_t bytes() const { return bytes_; }  // of the checkpoint that will be read
  // Throws Error with the list when the source has tensors that nobody asked for and `ignored`
  // (asked with the name behind the prefix) does not know.
  void check_nothing_is_left(const std::function<bool(std::string_view)>& ignored) const;

 private:
  void count(const std::string& name, const FileShape& shape);
  void count(const StoredWeight& weight);

  const WeightSource& source_;
  uint64_t bytes_ = 0;
  std::set<std::string> used_;
};

class Loader : public nn::WeightVisitor {
 public:
  Loader(const WeightSource& source, Backend& backend, LoadOptions options);

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv& into, const nn::ConvSpec& spec) override;
  void vector(nn::Vector& into, const std::string& name, int64_t length) override;
  void table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) override;

  // Of everything that was loaded so far, but for what was converted before: that is not a part of
  // the model's files.
  const Fingerprint& fingerprint() const { return fingerprint_; }

 private:
  using Stored = std::span<const std::unique_ptr<StoredWeight>>;
  // Weights whose rows follow one another, with their bias F32 [n] or none, as one part.
  nn::LinearPart load_part(Stored weights, std::span<const float> bias, bool int8, RowOrder order);
  QWeight load_int8(Stored weights, std::span<const float> bias, RowOrder order);
  // In the backend's memory: codes of rows from `first` on, and what their scales are still to be
  // multiplied by, or no data.
  using UseCodes =
      std::function<void(int64_t first, const QTensor& codes, const ConstTensorView& factors)>;
  // The group in which the rows of a weight are rotated when they are quantized here, or 0.
  int64_t rotation_of(const StoredWeight& weight) const;
  // What its activations need.
  StoredTransform transform_of(const StoredWeight& weight) const;
  // The codes of all rows of a weight, some at a time.
  void quantize(const StoredWeight& weight, const UseCodes& use);
  // The values of the codes, in options_.dtype.
  Buffer load_rounded(Stored weights);
  Buffer load_plain(Stored weights);
  // All rows of a weight, of options_.dtype.
  void convert(const StoredWeight& weight, std::byte* into);
  // A weight that stays in its files is read once for the fingerprint, and checked then.
  void look_through(const StoredWeight& weight);
  // F32 [length], of parts that follow one another; empty without a bias.
  std::vector<float> load_bias(const nn::LinearSpec& spec,
                               const std::vector<nn::LinearSpec::Part>& layout);
  Buffer upload_vector(std::span<const float> values, DType dtype);
  bool counts(const StoredWeight& weight) const {  // for the fingerprint
    return options_.fingerprint && !source_.is_converted(weight);
  }
  Fingerprint loaded(const StoredWeight& weight, WeightUpload& upload);
  void loaded(const std::string& name);

  const WeightSource& source_;
  Backend& backend_;
  LoadOptions options_;
  Fingerprint fingerprint_;
};

}  // namespace octet::weights
