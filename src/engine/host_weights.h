// The weights of a unit in host memory, in the layout of the device's kernels: bringing them back
// is a plain copy.
#pragma once

#include <functional>
#include <vector>

#include "backend/backend.h"
#include "nn/weights.h"

namespace octet::engine {

class HostWeights {
 public:
  using Visit = std::function<void(nn::WeightVisitor&)>;

  // Copies the loaded weights to the host; the unit keeps its own memory.
  void keep(Backend& backend, const Visit& visit);
  // Copies them back to the device, in the order in which they were kept.
  void restore(Backend& backend, const Visit& visit) const;

  bool is_kept() const { return kept_; }
  uint64_t bytes() const;

 private:
  class Keeper;
  class Restorer;

  // These look like the loaded ones, but their memory is the host's.
  std::vector<nn::Linear> linears_;
  std::vector<nn::Conv> convs_;
  std::vector<nn::Vector> vectors_;
  std::vector<nn::Table> tables_;
  bool kept_ = false;
};

}  // namespace octet::engine
