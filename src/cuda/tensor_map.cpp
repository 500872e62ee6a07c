#include "cuda/tensor_map.h"

#include <cudaTypedefs.h>

#include <algorithm>

#include "base/error.h"
#include "cuda/check.h"

namespace octet::cuda {
namespace {

// From the driver by name: the library itself links only against the runtime.
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

template <size_t kRank>
CUtensorMap encode(const char* what, const void* data, const std::array<int64_t, kRank>& sizes,
                   const std::array<int64_t, kRank - 1>& strides,
                   const std::array<cuuint32_t, kRank>& box) {
  std::array<cuuint64_t, kRank> extents;
  std::array<cuuint64_t, kRank - 1> steps;
  std::array<cuuint32_t, kRank> ones;
  ones.fill(1);
  const auto positive = [](int64_t value) {
    return static_cast<cuuint64_t>(std::max<int64_t>(1, value));
  };
  std::transform(sizes.begin(), sizes.end(), extents.begin(), positive);
  std::transform(strides.begin(), strides.end(), steps.begin(), positive);
  CUtensorMap map;
  const CUresult result =
      encode_function()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, kRank, const_cast<void*>(data),
                        extents.data(), steps.data(), box.data(), ones.data(),
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(result == CUDA_SUCCESS, "{}: a tensor map of {} x {} bytes was refused with error {}", what,
        sizes[1], sizes[0], static_cast<int>(result));
  return map;
}

}  // namespace

std::string why_no_tensor_maps() {
  return encode_function() == nullptr ? "needs cuTensorMapEncodeTiled, a driver of CUDA 12" : "";
}

CUtensorMap make_tensor_map(const char* what, const void* data, std::array<int64_t, 3> sizes,
                            std::array<int64_t, 2> strides, int box_rows, int box_layers) {
  return encode<3>(
      what, data, sizes, strides,
      {kMapRowBytes, static_cast<cuuint32_t>(box_rows), static_cast<cuuint32_t>(box_layers)});
}

CUtensorMap make_tensor_map(const char* what, const void* data, std::array<int64_t, 5> sizes,
                            std::array<int64_t, 4> strides, std::array<int, 5> box) {
  std::array<cuuint32_t, 5> extents;
  std::transform(box.begin(), box.end(), extents.begin(),
                 [](int extent) { return static_cast<cuuint32_t>(extent); });
  return encode<5>(what, data, sizes, strides, extents);
}

CUtensorMap make_tensor_map(const char* what, const void* data, std::array<int64_t, 2> sizes,
                            int64_t stride, int box_rows) {
  return encode<2>(what, data, sizes, {stride}, {kMapRowBytes, static_cast<cuuint32_t>(box_rows)});
}

}  // namespace octet::cuda
