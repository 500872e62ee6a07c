// A LoRA file: low-rank changes of a model's linears, W + factor * B A.
//
// The file is untrusted, and nothing in it is passed over: a tensor that belongs to no linear of
// the model, a shape that does not fit or one matrix without the other is an error with the list.
// Rows count, not how they are split: a LoRA of a fused qkv changes the rows of weights
// that are stored apart, and three of q, k and v those of a fused weight.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "formats/checkpoint.h"
#include "octet/model_options.h"
#include "weights/lora/lora_names.h"
#include "weights/weight_source.h"

namespace octet::weights {

class LoraConfig;

// A matrix in a LoRA file: F32, BF16 or F16.
struct LoraMatrix {
  std::string name;  // of the tensor
  DType dtype = DType::f32;
  std::span<const std::byte> bytes;
  const TensorFile* file = nullptr;
};

// The change of some rows of one linear.
struct LoraPart {
  size_t network = 0;
  size_t linear = 0;  // of the network's list
  int64_t first = 0, rows = 0, k = 0;
  float factor = 0;     // strength * alpha / rank
  int64_t rank = 0;     // 0: `up` is the whole difference [rows, k]
  LoraMatrix down, up;  // [rank, k] and [rows, rank]
};

// Either way; larger ones are mistakes.
inline constexpr float kMaxLoraStrength = 100;

// Throws InvalidRequest for one without a file's name, for a strength beyond kMaxLoraStrength, and
// for networks that the model does not have. Opens no file.
void check_lora(const octet::Lora& request, std::span<const NetworkNames> networks);

class Lora {
 public:
  // `networks`: all of the model, and `linears` those of each, which may differ in their sizes. A
  // network that is not opened has none there: it is taken to be like the first. Throws
  // what check_lora() does, too.
  Lora(const octet::Lora& request, std::span<const NetworkNames> networks,
       std::span<const std::vector<nn::LinearSpec>> linears);

  const std::string& path() const { return file_.path(); }
  bool changes(size_t network) const;
  // Those that change rows of this module in a network; with strength 0, none.
  std::vector<const LoraPart*> parts_of(const LoraModule& module, size_t network) const;
  const LoraModules& modules(size_t network) const {
    return opened_[network < opened_.size() ? network : 0].modules;
  }

  // Names what it does to a model: the content of the file, strength, networks.
  std::string identity(ThreadPool& pool) const;

 private:
  struct Group;  // the tensors of one module
  using Groups = std::map<std::string, Group>;
  void add(const Groups& groups, const std::set<size_t>& chosen,
           std::vector<std::string>& problems);
  void add(const Group& group, size_t network, const LoraConfig& config,
           std::vector<std::string>& problems);
  bool overlaps(const LoraPart& part) const;
  LoraMatrix matrix(const std::string& name) const;
  std::string missing_in(size_t network, const LoraName& name) const;

  struct Opened {
    std::string network;  // its name
    LoraModules modules;
  };

  octet::Lora request_;
  Checkpoint file_;
  std::vector<Opened> opened_;  // networks
  std::vector<LoraPart> parts_;
};

// For WeightSource::set_change: merges LoRAs, in this order, into the weights of one network.
// Weights that none of them changes stay as they are. An INT8 weight becomes one in F32 that is to
// be INT8 again under the same transform.
WeightSource::Change merge_loras(std::vector<std::shared_ptr<const Lora>> loras, size_t network);

}  // namespace octet::weights
