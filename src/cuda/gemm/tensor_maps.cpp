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

const CUtensorMap& TensorMaps::weight(const int8_t* w, int64_t n, int64_t k, int box_rows) {
  const Key key = {w, n, k, box_rows};
  if (const auto known = weights_.find(key); known != weights_.end()) return known->second;
  if (weights_.size() >= kMostRemembered) weights_.clear();
  const int64_t rows = packed_rows(n);
  const CUtensorMap map = make_tensor_map("gemm", w, {kBlockBytes, rows, ceil_div(k, kBlockBytes)},
                                          {kBlockBytes, rows * kBlockBytes}, box_rows);
  return weights_.emplace(key, map).first->second;
}

}  // namespace octet::cuda
