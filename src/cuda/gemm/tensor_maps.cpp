#include "cuda/gemm/tensor_maps.h"

#include <cudaTypedefs.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/error.h"
#include "cuda/check.h"
#include "cuda/gemm/pack.h"

namespace octet::cuda {
namespace {

constexpr size_t kMostRemembered = 4096;  // 512 KB

// From the driver by name: the library itself links against the runtime alone.
PFN_cuTensorMapEncodeTiled_v12000 encode_function() {
  static const auto function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = {};
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                                12000, cudaEnableDefault, &result);
    if (status != cudaSuccess) cudaGetLastError();
    const bool good = status == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return good ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found) : nullptr;
  }();
  return function;
}

// Bytes, 128 of which form a row of a box, in the order of wgmma's 128-byte swizzle. What a box has
// past the end of the tensor reads as zeros.
template <size_t kRank>
CUtensorMap encode(const int8_t* data, const std::array<cuuint64_t, kRank>& sizes,
                   const std::array<cuuint64_t, kRank - 1>& strides, int box_rows) {
  std::array<cuuint32_t, kRank> box = {}, steps = {};
  box.fill(1);
  steps.fill(1);
  box[0] = kBlockBytes;
  box[1] = static_cast<cuuint32_t>(box_rows);
  CUtensorMap map;
  const CUresult result =
      encode_function()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, kRank, const_cast<int8_t*>(data),
                        sizes.data(), strides.data(), box.data(), steps.data(),
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(result == CUDA_SUCCESS, "gemm: a tensor map of {} x {} bytes was refused with error {}",
        sizes[1], sizes[0], static_cast<int>(result));
  return map;
}

cuuint64_t size(int64_t value) { return static_cast<cuuint64_t>(std::max<int64_t>(1, value)); }

}  // namespace

std::string TensorMaps::unavailable() {
  return encode_function() == nullptr ? "needs cuTensorMapEncodeTiled, a driver of CUDA 12" : "";
}

CUtensorMap TensorMaps::activations(const int8_t* a, int64_t m, int64_t k, int64_t stride,
                                    int box_rows) {
  return encode<2>(a, {size(k), size(m)}, {size(stride)}, box_rows);
}

const CUtensorMap& TensorMaps::weight(const int8_t* w, int64_t n, int64_t k, int box_rows) {
  const Key key = {w, n, k, box_rows};
  if (const auto known = weights_.find(key); known != weights_.end()) return known->second;
  if (weights_.size() >= kMostRemembered) weights_.clear();
  const int64_t rows = packed_rows(n);
  const CUtensorMap map =
      encode<3>(w, {size(kBlockBytes), size(rows), size(ceil_div(k, kBlockBytes))},
                {size(kBlockBytes), size(rows * kBlockBytes)}, box_rows);
  return weights_.emplace(key, map).first->second;
}

}  // namespace octet::cuda
