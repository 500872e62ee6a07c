#include "audit/waiting_weights.h"

#include <algorithm>
#include <utility>

namespace octet::audit {
namespace {

// Conversions that no product has used yet. Of more, the older half is forgotten: a model that
// is dequantized as a whole before it runs has some hundred.
constexpr ptrdiff_t kMaxWaiting = 1024;

// Whether that many bytes hold that many weights in a known way: two or four to a byte, or
// blocks of GGUF, whose scales lie between the codes.
bool is_packed(int64_t bytes, int64_t weights) {
  struct Block {
    int64_t weights, bytes;
  };
  static constexpr Block kBlocks[] = {{2, 1},     {4, 1},     {32, 34},   {32, 18},
                                      {32, 20},   {32, 22},   {32, 24},   {256, 84},
                                      {256, 110}, {256, 144}, {256, 176}, {256, 210}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks), [&](const Block& block) {
    return bytes % block.bytes == 0 && bytes / block.bytes * block.weights == weights;
  });
}

// A weight of n x k is laid out by rows or columns, or in blocks of some dozen codes. A sound or a
// picture that happens to have as many elements is not.
bool is_laid_out(const std::vector<int64_t>& dims, int64_t n, int64_t k) {
  constexpr int64_t kLeastBlock = 16, kMostBlock = 256;
  if (dims.empty()) return true;  // not told
  int64_t before = 1;
  for (const int64_t dim : dims) {
    before *= dim;
    if (before == n || before == k) return true;
  }
  const int64_t last = dims.back();
  return last >= kLeastBlock && last <= kMostBlock && k % last == 0;
}

bool is_picture(const Conversion& conversion) {
  return conversion.code == ScalarType::uint8 && conversion.dims.size() == 4;
}

// Of three dimensions, of which the last two are a matrix.
int64_t matrices_in(const std::vector<int64_t>& dims) {
  return dims.size() == 3 ? std::max<int64_t>(dims[0], 1) : 1;
}

bool holds_matrices(const std::vector<int64_t>& dims, int64_t n, int64_t k) {
  return dims.size() == 3 && dims[0] > 1 &&
         ((dims[1] == n && dims[2] == k) || (dims[1] == k && dims[2] == n));
}

}  // namespace

void WaitingWeights::add(WaitingWeight weight) {
  if (std::ssize(weights_) == kMaxWaiting) {
    weights_.erase(weights_.begin(), weights_.begin() + kMaxWaiting / 2);
  }
  weight.uses = matrices_in(weight.conversion.dims);
  weights_.push_back(std::move(weight));
}

std::optional<size_t> WaitingWeights::find(int64_t m, int64_t n, int64_t k, int64_t batch,
                                           size_t products) const {
  const int64_t weights = n * k;
  for (size_t i = weights_.size(); i-- > 0;) {
    const WaitingWeight& waiting = weights_[i];
    const Conversion& conversion = waiting.conversion;
    const bool right_before = waiting.products_before == products;
    if (weights == 0) {
      if (right_before) return i;
      continue;
    }
    if (is_picture(conversion)) continue;
    const int64_t codes = conversion.codes;
    // Bytes that the product multiplies.
    if (conversion.code == ScalarType::uint8 && codes == m * k) continue;
    if (batch > 1) {
      if (codes == batch * weights) return i;
      continue;
    }
    if (holds_matrices(conversion.dims, n, k)) return i;
    const bool as_many = waiting.numbers == weights || codes == weights;
    if (as_many && is_laid_out(conversion.dims, n, k)) return i;
    // Bytes that hold two codes, or blocks of codes with their scale.
    const bool packs = conversion.code == ScalarType::uint8 || conversion.code == ScalarType::fp4;
    const bool fits = codes == 0 || (packs && is_packed(codes, weights));
    if (fits && waiting.numbers == 0 && right_before) return i;
  }
  return std::nullopt;
}

size_t WaitingWeights::find_pieces(int64_t weights, size_t products) const {
  int64_t together = 0;
  for (size_t i = weights_.size(); i-- > 0 && weights_[i].products_before == products;) {
    together += weights_[i].conversion.codes;
    if (together == weights && weights > 0) return weights_.size() - i;
    if (together > weights) return 0;
  }
  return 0;
}

WaitingWeight* WaitingWeights::latest(int64_t elements, size_t products) {
  for (size_t i = weights_.size(); i-- > 0 && weights_[i].products_before == products;) {
    if (weights_[i].conversion.codes == elements || weights_[i].numbers == elements) {
      return &weights_[i];
    }
  }
  return nullptr;
}

WaitingWeight WaitingWeights::take(size_t index) {
  WaitingWeight taken = weights_[index];
  if (--weights_[index].uses > 0) {
    // Its time is told once, its matrices stay.
    weights_[index].more.clear();
    weights_[index].was_taken = true;
    return taken;
  }
  weights_.erase(weights_.begin() + static_cast<ptrdiff_t>(index));
  return taken;
}

void WaitingWeights::forget(const Signature& users, size_t products) {
  for (const Operand& operand : users) {
    const int64_t elements = elements_of(operand);
    if (elements == 0) continue;
    std::erase_if(weights_, [&](const WaitingWeight& waiting) {
      return waiting.products_before == products &&
             (waiting.numbers == elements || waiting.conversion.codes == elements);
    });
  }
}

void WaitingWeights::forget_written_back(const std::vector<int64_t>& dims) {
  if (!weights_.empty() && !dims.empty() && weights_.back().conversion.dims == dims) {
    weights_.pop_back();
  }
}

}  // namespace octet::audit
