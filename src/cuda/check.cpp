#include "cuda/check.h"

#include "base/error.h"

namespace octet::cuda {
namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view remedy(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation: return "; free memory of this GPU, or use a smaller problem";
    case cudaErrorNoKernelImageForDevice: return "; build with -DOCTET_CUDA_ARCHITECTURES=all";
    case cudaErrorInsufficientDriver: return "; update the NVIDIA driver";
    default: return "";
  }
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view what, std::source_location where) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it: the next call must not see it again
  fail("cuda: {} failed at {}:{}: {} ({}){}", what, file_name(where.file_name()), where.line(),
       cudaGetErrorString(status), cudaGetErrorName(status), remedy(status));
}

void check_launch(std::string_view kernel, std::source_location where) {
  check_cuda(cudaGetLastError(), kernel, where);
}

}  // namespace octet::cuda
