#include "audit/waiting_weights.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace octet::audit {
namespace {

// Conversions that no product has used yet. Of more, the older half is forgotten: a model that
// is dequantized as a whole before it runs has some hundred.
constexpr ptrdiff_t kMaxWaiting = 1024;
// Between a weight and its product are at most those of the weights that were widened with it.
constexpr size_t kSoon = 8;
// Weights are padded by so many rows at most.
constexpr int64_t kMostPadding = 256;

enum class Layout : uint8_t { other, possible, of_weight };

using Dims = std::vector<int64_t>;

// Whether that many bytes hold that many weights in a known way: two or four to a byte, or
// blocks of GGUF, whose scales lie between the codes.
bool is_packed(int64_t bytes, int64_t weights) {
  struct Block {
    int64_t weights, bytes;
  };
  static constexpr Block kBlocks[] = {{2, 1},     {4, 1},     {32, 34},   {32, 18},  {32, 20},
                                      {32, 22},   {32, 24},   {256, 50},  {256, 56}, {256, 66},
                                      {256, 74},  {256, 82},  {256, 84},  {256, 98}, {256, 110},
                                      {256, 136}, {256, 144}, {256, 176}, {256, 210}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks), [&](const Block& block) {
    return bytes % block.bytes == 0 && bytes / block.bytes * block.weights == weights;
  });
}

Dims without_ones(Dims dims) {
  std::erase(dims, 1);
  return dims;
}

// The same without an allocation: traces of many shapes compare each with all that wait. Of more
// dims than any weight has, none.
struct FewDims {
  std::array<int64_t, 12> values;
  size_t size = 0;

  explicit FewDims(const Dims& dims) {
    for (const int64_t dim : dims) {
      if (dim == 1) continue;
      if (size == values.size()) {
        size = 0;
        return;
      }
      values[size++] = dim;
    }
  }
  int64_t back() const { return values[size - 1]; }
  int64_t elements() const { return elements_of(std::span(values.data(), size)); }
  // Whether it is the other, perhaps several times.
  bool ends_with(const FewDims& other) const {
    return other.size > 1 && size >= other.size &&
           std::equal(other.values.begin(), other.values.begin() + other.size,
                      values.begin() + (size - other.size));
  }
};

bool is_padded(int64_t size, int64_t wanted) {
  const int64_t padding = size - wanted;
  return padding >= 0 && padding <= kMostPadding && padding * 4 <= wanted;
}

// [blocks, codes of a block], a block being a part of a row.
bool is_in_blocks(const Dims& dims, int64_t k) {
  constexpr int64_t kLeastBlock = 16, kMostBlock = 256;
  const int64_t last = dims.empty() ? 0 : dims.back();
  return last >= kLeastBlock && last <= kMostBlock && k % last == 0;
}

// [codes of a block, blocks], as HQQ has them along the other axis.
bool is_in_columns(const Dims& dims) {
  constexpr int64_t kFewBlocks = 8;
  return dims.size() == 2 && (dims[0] == 32 || dims[0] == 64 || dims[0] == 128) &&
         dims[1] > kFewBlocks * dims[0];
}

bool is_padded_matrix(const Dims& dims, int64_t n, int64_t k) {
  return dims.size() == 2 && ((is_padded(dims[0], n) && is_padded(dims[1], k)) ||
                              (is_padded(dims[0], k) && is_padded(dims[1], n)));
}

// Rows or columns of a weight of n x k, perhaps in groups.
bool is_matrix(const Dims& dims, int64_t n, int64_t k) {
  if (dims.size() == 2) return (dims[0] == n && dims[1] == k) || (dims[0] == k && dims[1] == n);
  if (dims.size() != 3) return false;
  const int64_t front = dims[0] * dims[1], back = dims[1] * dims[2];
  return (dims[0] == n && back == k) || (dims[0] == k && back == n) ||
         (front == n && dims[2] == k) || (front == k && dims[2] == n);
}

Layout layout_for(const WaitingWeight& waiting, int64_t n, int64_t k) {
  const Dims dims = without_ones(waiting.conversion.dims);
  const int64_t weights = n * k;
  const bool as_many = waiting.numbers == weights || waiting.conversion.codes == weights;
  if (is_matrix(dims, n, k)) return Layout::of_weight;
  const bool scaled = waiting.conversion.scaled || !waiting.more.empty();
  if (is_padded_matrix(dims, n, k)) return scaled ? Layout::of_weight : Layout::possible;
  if (!as_many) return Layout::other;
  if (waiting.unpacked || waiting.named) return Layout::of_weight;
  // Blocks may be columns; so may be much else.
  if (scaled && is_in_columns(dims)) return Layout::possible;
  if (!is_in_blocks(dims, k)) return Layout::other;
  return scaled ? Layout::of_weight : Layout::possible;
}

// Pictures, and masks for a batch and its heads.
bool has_batch(const WaitingWeight& waiting) {
  const Conversion& conversion = waiting.conversion;
  if (conversion.dims.size() < 4) return false;
  const bool masks =
      conversion.dims[0] == 1 && !waiting.unpacked && !waiting.named && !waiting.told;
  return masks || conversion.code == ScalarType::uint8;
}

// Of three dimensions, of which the last two are a matrix.
int64_t matrices_in(const Dims& dims) {
  return dims.size() == 3 ? std::max<int64_t>(dims[0], 1) : 1;
}

bool holds_matrices(const Dims& dims, int64_t n, int64_t k) {
  return dims.size() == 3 && dims[0] > 1 &&
         ((dims[1] == n && dims[2] == k) || (dims[1] == k && dims[2] == n));
}

// The rows that a tensor of several weights of k columns has, laid out either way; 0: it is none.
int64_t rows_of_several(const Dims& dims, int64_t n, int64_t k) {
  if (dims.size() != 2) return 0;
  if (dims[1] == k && dims[0] > n) return dims[0];
  return dims[0] == k && dims[1] > n ? dims[1] : 0;
}

}  // namespace

bool is_same_matrix(const std::vector<int64_t>& operand, const std::vector<int64_t>& dims) {
  return FewDims(operand).ends_with(FewDims(dims));
}

bool may_be_view(const std::vector<int64_t>& operand, const std::vector<int64_t>& dims) {
  const FewDims seen(operand), known(dims);
  if (seen.size < 2 || known.size < 2) return false;
  if (seen.ends_with(known)) return true;
  const int64_t elements = known.elements();
  // Blocks of a row tell no rows.
  constexpr int64_t kMostBlock = 256;
  int64_t last = 1;
  for (size_t i = seen.size; i-- > 0 && last < elements;) last *= seen.values[i];
  if (known.size == 2 && known.values[1] <= kMostBlock && last == elements) return true;
  if (elements == 0 || seen.elements() != elements) return false;
  if (seen.back() == known.back()) return true;
  int64_t rows = 1;
  for (size_t i = 0; i < seen.size; ++i) {
    rows *= seen.values[i];
    if (rows >= known.values[0]) return rows == known.values[0];
  }
  return false;
}

void WaitingWeights::add(WaitingWeight weight) {
  if (std::ssize(weights_) == kMaxWaiting) {
    weights_.erase(weights_.begin(), weights_.begin() + kMaxWaiting / 2);
  }
  weight.uses = matrices_in(weight.conversion.dims);
  weights_.push_back(std::move(weight));
}

std::optional<WeightMatch> WaitingWeights::find(const ProductSize& size, size_t products) const {
  const auto [m, n, k, batch] = size;
  const int64_t weights = n * k;
  std::optional<WeightMatch> possible, part;
  for (size_t i = weights_.size(); i-- > 0;) {
    const WaitingWeight& waiting = weights_[i];
    const Conversion& conversion = waiting.conversion;
    const bool right_before = waiting.products_before == products;
    if (weights == 0) {
      if (right_before && waiting.named) return WeightMatch{i, true};
      continue;
    }
    if (has_batch(waiting)) continue;
    const int64_t codes = conversion.codes;
    // Bytes that the product multiplies.
    if (conversion.code == ScalarType::uint8 && codes == m * k && !waiting.unpacked) continue;
    // Keys of attention are as many matrices as well.
    if (batch > 1) {
      if (codes == batch * weights) return WeightMatch{i};
      continue;
    }
    const bool several = holds_matrices(conversion.dims, n, k);
    const bool soon = products - waiting.products_before <= kSoon || several;
    // Of m x k, what was widened may be the activations.
    const bool sure = soon && m != n && codes != m * k && !waiting.doubtful && !waiting.combined &&
                      !waiting.listed;
    if (several) return WeightMatch{i, sure, 0, true};
    const Layout layout = layout_for(waiting, n, k);
    if (layout == Layout::of_weight && sure) return WeightMatch{i, true};
    if (layout != Layout::other && !possible) possible = WeightMatch{i};
    // Bytes that hold two codes, or blocks of codes with their scale.
    const bool packs = conversion.code == ScalarType::uint8 || conversion.code == ScalarType::fp4;
    const bool fits =
        codes == 0 ? waiting.named : packs && is_packed(codes, weights) && waiting.numbers == 0;
    if (fits && right_before)
      return WeightMatch{i, !waiting.doubtful && !waiting.combined &&
                                (waiting.named || waiting.unpacked || waiting.told)};
    // q, k and v of one tensor follow each other.
    const int64_t rows = rows_of_several(without_ones(conversion.dims), n, k);
    const bool goes_on = waiting.products_before + waiting.parts == products;
    if (goes_on && rows > 0 && rows != m && waiting.parts_taken + n <= rows && !part) {
      part = WeightMatch{i, sure, rows};
    }
  }
  return possible ? possible : part;
}

WaitingWeights::Pieces WaitingWeights::find_pieces(const ProductSize& size, size_t products) const {
  const int64_t weights = size.n * size.k;
  int64_t together = 0;
  Pieces pieces{.count = 0, .sure = size.m != size.n};
  for (size_t i = weights_.size(); i-- > 0 && weights_[i].products_before == products;) {
    const WaitingWeight& piece = weights_[i];
    const Dims dims = without_ones(piece.conversion.dims);
    const bool fits = dims.size() == 2 && (dims[0] == size.n || dims[0] == size.k ||
                                           dims[1] == size.n || dims[1] == size.k);
    const bool known =
        fits || (is_in_blocks(dims, size.k) && (piece.unpacked || piece.conversion.scaled)) ||
        (piece.unpacked && piece.conversion.by_table);
    pieces.sure = pieces.sure && known && !piece.doubtful && !piece.combined;
    together += piece.conversion.codes;
    if (together == weights && weights > 0) {
      pieces.count = weights_.size() - i;
      return pieces;
    }
    if (together > weights) break;
  }
  return {};
}

WaitingWeight* WaitingWeights::latest(int64_t elements, size_t products) {
  int64_t together = 0;
  for (size_t i = weights_.size(); i-- > 0 && weights_[i].products_before == products;) {
    const int64_t codes = weights_[i].conversion.codes;
    if (codes == elements || weights_[i].numbers == elements) return &weights_[i];
    together += codes;
    if (together == elements) return &weights_.back();
  }
  return nullptr;
}

WaitingWeight WaitingWeights::take(const WeightMatch& match, int64_t part) {
  WaitingWeight taken = weights_[match.index];
  WaitingWeight& left = weights_[match.index];
  left.parts_taken += part;
  left.parts += part > 0 ? 1 : 0;
  if (part == 0) --left.uses;
  if (part > 0 ? left.parts_taken < match.rows : left.uses > 0) {
    // Its time is told once, its matrices stay.
    left.more.clear();
    left.was_taken = true;
    return taken;
  }
  weights_.erase(weights_.begin() + static_cast<ptrdiff_t>(match.index));
  return taken;
}

void WaitingWeights::forget(size_t products) {
  std::erase_if(weights_,
                [&](const WaitingWeight& waiting) { return waiting.products_before == products; });
}

void WaitingWeights::forget(const Signature& users, size_t products) {
  std::erase_if(weights_, [&](const WaitingWeight& waiting) {
    if (waiting.products_before != products) return false;
    return std::any_of(users.begin(), users.end(), [&](const Operand& operand) {
      const int64_t elements = elements_of(operand);
      return elements > 0 && (waiting.numbers == elements || waiting.conversion.codes == elements);
    });
  });
}

void WaitingWeights::forget(const Operand& used) {
  std::erase_if(weights_, [&](const WaitingWeight& waiting) {
    return may_be_view(used.dims, waiting.conversion.dims);
  });
}

void WaitingWeights::doubt(const Operand& used, bool refutes) {
  for (WaitingWeight& waiting : weights_) {
    if (!may_be_view(used.dims, waiting.conversion.dims)) continue;
    waiting.doubtful = true;
    waiting.refuted =
        waiting.refuted || (refutes && is_same_matrix(used.dims, waiting.conversion.dims));
  }
}

void WaitingWeights::doubt(int64_t elements) {
  for (WaitingWeight& waiting : weights_) {
    if (elements > 0 && waiting.conversion.codes == elements) waiting.doubtful = true;
  }
}

void WaitingWeights::combine(int64_t elements) {
  for (WaitingWeight& waiting : weights_) {
    if (waiting.conversion.codes == elements || waiting.numbers == elements) {
      waiting.combined = true;
    }
  }
}

void WaitingWeights::doubt(const Signature& users) {
  for (const Operand& operand : users) doubt(audit::elements_of(operand));
}

void WaitingWeights::doubt_listed() {
  for (WaitingWeight& waiting : weights_) waiting.listed = true;
}

void WaitingWeights::forget_written_back(const std::vector<int64_t>& dims) {
  if (!weights_.empty() && !dims.empty() && weights_.back().conversion.dims == dims) {
    weights_.pop_back();
  }
}

}  // namespace octet::audit
