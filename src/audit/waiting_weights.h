// Tensors of codes that became numbers, and wait for the product that multiplies by them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "audit/products.h"

namespace octet::audit {

struct WaitingWeight {
  uint32_t work = 0;  // of WorkList::works()
  Conversion conversion;
  int64_t numbers = 0;         // elements of the other side; 0: not told
  std::vector<uint32_t> more;  // works on the numbers: scales, another rounding
  size_t products_before = 0;
  bool named = false;      // by a kernel that does nothing else
  int64_t uses = 1;        // several matrices in one tensor, as experts have them
  bool was_taken = false;  // one of them, before
};

class WaitingWeights {
 public:
  void add(WaitingWeight weight);

  // The latest that fits a weight of n x k in `batch` matrices; m x k are the activations. Where
  // nothing tells sizes (n is 0), the latest since the last product, of which there were
  // `products`.
  std::optional<size_t> find(int64_t m, int64_t n, int64_t k, int64_t batch, size_t products) const;

  // How many of the latest since the last product hold so many weights together, as the pieces of
  // one weight do; 0: none do.
  size_t find_pieces(int64_t weights, size_t products) const;

  // The latest since the last product with this many elements; null: none.
  WaitingWeight* latest(int64_t elements, size_t products);
  // The latest of all, or null.
  WaitingWeight* last() { return weights_.empty() ? nullptr : &weights_.back(); }

  // Gives one away, or one of its matrices.
  WaitingWeight take(size_t index);
  // Others have used those since the last product that have as many elements as an operand.
  void forget(const Signature& users, size_t products);
  // The same codes were written back: an optimizer's state, no weight.
  void forget_written_back(const std::vector<int64_t>& dims);

  size_t size() const { return weights_.size(); }
  const WaitingWeight& operator[](size_t index) const { return weights_[index]; }

 private:
  std::vector<WaitingWeight> weights_;  // in order of time
};

}  // namespace octet::audit
