// Where the weights of one model come from: a checkpoint, or several that are asked in turn, so
// that a file with some of the weights comes before the one that has the rest.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weights/dialect.h"

namespace octet::weights {

// What `octet quantize` did, in the metadata of a file that it wrote: JSON.
inline constexpr std::string_view kQuantizationEntry = "octet.quantization";
// And there, the configuration of the network: what its config.json would say.
inline constexpr std::string_view kConfigEntry = "octet.config";
// Of one network of a file with several, where it differs from that of the first.
inline std::string config_entry_of(std::string_view network) {
  return std::string(kConfigEntry) + "." + std::string(network);
}

class WeightSource {
 public:
  // Changes a weight on its way out (a LoRA does); `module` is its name without prefix.
  using Change = std::function<std::unique_ptr<StoredWeight>(std::unique_ptr<StoredWeight>,
                                                             const std::string& module)>;

  // From the name that a model asks for to that in a checkpoint, of a module or of a tensor.
  using Rename = std::function<std::string(const std::string&)>;

  struct Layer {
    std::shared_ptr<const Checkpoint> checkpoint;
    std::string prefix;
    bool strict = true;  // all of its tensors have to be of use
    bool converted = false;
    bool holds_int8 = false;  // linears, under the prefix
    Rename rename = {};       // none: the names are the same

    std::string name_of(const std::string& asked) const {
      return prefix + (rename ? rename(asked) : asked);
    }
  };

  WeightSource() = default;
  WeightSource(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix) {
    add(std::move(checkpoint), std::move(prefix));
  }

  // `prefix` precedes every name in this checkpoint. Searched after those already added.
  void add(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix, Rename rename = {});
  // The same for one that may contain more than is needed.
  void add_base(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix);
  // Before all others: weights that were changed and converted before. They are not changed again,
  // and say nothing about what the others are.
  void add_converted(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix);
  void set_change(Change change) { change_ = std::move(change); }

  const std::vector<Layer>& layers() const { return layers_; }  // in the order of asking
  const std::string& path() const;                              // of the first checkpoint
  bool holds_int8() const;  // one of the checkpoints has INT8 linears
  // Whether a weight of this source is in floating point by choice: its checkpoint has INT8
  // linears, or one that was asked before and left it out.
  bool is_protected(const StoredWeight& weight) const;
  bool is_converted(const StoredWeight& weight) const;  // comes from add_converted()

  bool has_weight(const std::string& module) const { return depth_of(module) < layers_.size(); }
  // How many checkpoints were asked in vain before one has the module; as many as there are when
  // none has.
  size_t depth_of(const std::string& module) const;
  // Throws Error when the module is missing or not as its dialect says.
  std::unique_ptr<StoredWeight> weight(const std::string& module, int64_t rows, int64_t k) const;

  const TensorInfo* find(const std::string& name) const;  // nullptr when absent
  const TensorInfo& check_vector(const std::string& name, const FileShape& shape) const;
  void read_vector(const std::string& name, const FileShape& shape, float* into) const;
  std::span<const std::byte> bytes(const std::string& name) const;
  const TensorFile& file_of(const std::string& name) const;

  // Tensors that are not in `used` (with their prefix) and that `ignored` (asked without it, of
  // those that have it) does not claim.
  std::vector<std::string> left_over(const std::set<std::string>& used,
                                     const std::function<bool(std::string_view)>& ignored) const;
  // The dialect of a module under its full name, for people.
  const char* dialect_name(const std::string& full_name) const;
  // The state of all checkpoints as text, without reading all of their data: prefixes, the identity
  // of each file (base/file_identity.h), and a hash of what their headers say.
  std::string identity() const;
  // The name in the checkpoint that has this tensor.
  std::string full_name(const std::string& name) const;

 private:
  const Layer* layer_with(const std::string& name) const;
  const Layer& layer_for(const std::string& name) const;  // the first, when none has it
  const Layer* layer_of(const StoredWeight& weight) const;

  std::vector<Layer> layers_;
  Change change_;
};

}  // namespace octet::weights
