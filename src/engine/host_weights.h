// The weights of a unit in host memory, as the device's kernels take them: bringing them back is a
// copy, nothing is converted.
#pragma once

#include <functional>
#include <vector>

#include "backend/backend.h"
#include "nn/weights.h"

namespace octet::engine {

class HostWeights {
 public:
  using Visit = std::function<void(nn::WeightVisitor&)>;

  // Copies what is loaded to the host; the unit keeps its own memory.
  void keep(Backend& backend, const Visit& visit);
  // Copies it to the device again, in the order in which it was kept.
  void restore(Backend& backend, const Visit& visit) const;

  bool is_kept() const { return kept_; }
  uint64_t bytes() const;

 private:
  class Keeper;
  class Restorer;

  // All of these look like the loaded ones, with memory of the host.
  std::vector<nn::Linear> linears_;
  std::vector<nn::Conv> convs_;
  std::vector<nn::Vector> vectors_;
  std::vector<nn::Table> tables_;
  bool kept_ = false;
};

}  // namespace octet::engine
