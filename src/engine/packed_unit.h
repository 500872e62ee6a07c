// The weights of a unit in one piece of memory, in the layout of the device's kernels: wherever the
// piece lies, in the device's memory or the host's, bringing it is one copy.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "nn/weights.h"
#include "tensor/tensor.h"

namespace octet::engine {

class PackedUnit {
 public:
  using Visit = std::function<void(nn::WeightVisitor&)>;
  using Copy = std::function<void(std::byte* to, const std::byte* from, size_t bytes)>;

  // Of a unit that is loaded: what it takes in one piece.
  static size_t bytes_of(const Visit& visit);

  PackedUnit() = default;
  // Copies the loaded weights to `memory`; the unit keeps its own.
  PackedUnit(const Visit& visit, Buffer memory, const Copy& copy);

  // Points the unit at its weights in a piece of the device's memory. They have to be there before
  // it runs, and whoever owns the piece keeps it.
  void attach(const Visit& visit, std::byte* at) const;

  const std::byte* data() const { return memory_.data(); }
  size_t bytes() const { return memory_.bytes(); }
  explicit operator bool() const { return static_cast<bool>(memory_); }

 private:
  class Keeper;
  class Attacher;

  Buffer memory_;
  // These look like the loaded ones, but for where their memory is.
  std::vector<nn::Linear> linears_;
  std::vector<nn::Conv> convs_;
  std::vector<nn::Vector> vectors_;
  std::vector<nn::Table> tables_;
};

}  // namespace octet::engine
