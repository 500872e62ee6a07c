#include "cuda/gemm/tensor_maps.h"

#include "base/checked.h"
#include "cuda/gemm/pack.h"
#include "cuda/tensor_map.h"

namespace octet::cuda {
namespace {

constexpr size_t kMostRemembered = 4096;  // 512 KB
static_assert(kBlockBytes == kMapRowBytes);

}  // namespace

CUtensorMap TensorMaps::activations(const int8_t* a, int64_t m, int64_t k, int64_t stride,
                                    int box_rows) {
  return make_tensor_map("gemm", a, {k, m}, stride, box_rows);
}

template <class Make>
const CUtensorMap& TensorMaps::remember(const Key& key, Make make) {
  if (const auto known = weights_.find(key); known != weights_.end()) return known->second;
  if (weights_.size() >= kMostRemembered) weights_.clear();
  return weights_.emplace(key, make()).first->second;
}

const CUtensorMap& TensorMaps::weight(const int8_t* w, int64_t n, int64_t k, int box_rows) {
  return remember({w, n, k, 0, false, box_rows}, [&] {
    const int64_t rows = packed_rows(n);
    return make_tensor_map("gemm", w, {kBlockBytes, rows, ceil_div(k, kBlockBytes)},
                           {kBlockBytes, rows * kBlockBytes}, box_rows);
  });
}

const CUtensorMap& TensorMaps::plain_weight(const int8_t* w, int64_t n, int64_t k, int64_t stride,
                                            bool gated, int box_rows) {
  return remember({w, n, k, stride, gated, box_rows}, [&] {
    using Strides = std::array<int64_t, 4>;
    const Strides strides = gated ? Strides{n / 2 * stride, 4 * stride, stride, 16 * stride}
                                  : Strides{stride, 8 * stride, 2 * stride, 32 * stride};
    return make_tensor_map("gemm", w, std::array<int64_t, 5>{k, 2, 4, 4, n / 32}, strides,
                           std::array<int, 5>{kMapRowBytes, 2, 4, 4, box_rows / 32});
  });
}

}  // namespace octet::cuda
