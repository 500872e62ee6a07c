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
  bool named = false;  // by a kernel that does nothing else
  bool told = false;   // the name of the op says that it dequantizes
  // Bits were shifted and masked, or codes looked up: no mask, no input.
  bool unpacked = false;
  bool doubtful = false;    // something that is no product may have used it
  bool refuted = false;     // something that is no product used a matrix of these very dims
  bool combined = false;    // with as many other numbers: a mask, or scales that were expanded
  bool received = false;    // from another process
  bool scaled = false;      // multiplied by numbers of which there are fewer
  bool listed = false;      // something took a list of tensors since, of which it may be one
  int64_t uses = 1;         // several matrices in one tensor, as experts have them
  bool was_taken = false;   // one of them, before
  int64_t parts_taken = 0;  // rows (or columns) that products have used, one part each
  size_t parts = 0;
};

// A waiting weight that a product may have used.
struct WeightMatch {
  size_t index = 0;
  // Its layout is that of the weight, it is no layout of the activations, and the product came soon
  // after: no other tensor looks like that.
  bool sure = false;
  // More than 0: the product used a part of a tensor of several weights, as of q, k and v, which
  // has so many rows in all.
  int64_t rows = 0;
  bool several = false;  // it holds several such matrices, as experts have them
};

struct ProductSize {
  int64_t m = 0, n = 0, k = 0;  // 0: not told
  int64_t batch = 1;
};

// Whether an operand may be a tensor of these dims, or a view of it: the same
// rows first, or the same matrix last.
bool may_be_view(const std::vector<int64_t>& operand, const std::vector<int64_t>& dims);
// Whether it is one, or several of the same.
bool is_same_matrix(const std::vector<int64_t>& operand, const std::vector<int64_t>& dims);

class WaitingWeights {
 public:
  void add(WaitingWeight weight);

  // The latest that fits; of those where nothing tells sizes (n is 0), the latest that has a name
  // and came since the last product, of which there were `products`.
  std::optional<WeightMatch> find(const ProductSize& size, size_t products) const;

  // How many of the latest since the last product are the pieces of one weight; 0: none are.
  struct Pieces {
    size_t count = 0;
    bool sure = false;
  };
  Pieces find_pieces(const ProductSize& size, size_t products) const;

  // The latest since the last product with this many elements, alone or with those right before it;
  // null: none.
  WaitingWeight* latest(int64_t elements, size_t products);
  // The latest of all, or null.
  WaitingWeight* last() { return weights_.empty() ? nullptr : &weights_.back(); }

  // Gives one away, or one of its matrices, or `part` of its rows.
  WaitingWeight take(const WeightMatch& match, int64_t part = 0);
  // Something that is no product has used those since the last product: all of them, or those that
  // have as many elements as one of its operands.
  void forget(size_t products);
  void forget(const Signature& users, size_t products);
  // The same of one operand, which may be any of them that is laid out as it:
  // their only use, or perhaps of something else of that layout.
  void forget(const Operand& used);
  void doubt(const Operand& used, bool refutes = true);
  void doubt(int64_t elements);  // in any layout
  void combine(int64_t elements);
  void doubt(const Signature& users);
  // Something took a list of tensors, or tensors that nobody recorded.
  void doubt_listed();
  // The same codes were written back: an optimizer's state, no weight.
  void forget_written_back(const std::vector<int64_t>& dims);

  size_t size() const { return weights_.size(); }
  const WaitingWeight& operator[](size_t index) const { return weights_[index]; }

 private:
  std::vector<WaitingWeight> weights_;  // in order of time
};

}  // namespace octet::audit
