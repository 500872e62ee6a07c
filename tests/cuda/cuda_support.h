// What the tests of the CUDA backend share. Without a GPU they are skipped, with the reason.
#pragma once

#include <cstdlib>

#include "cuda/cuda_backend.h"
#include "cuda/cuda_devices.h"
#include "cuda/gemm/table.h"
#include "support.h"

namespace octet::test {

// Why there is nothing to run on; empty when there is.
inline std::string why_no_gpu() {
  const CudaDevices found = find_cuda_devices();
  if (!found.problem.empty()) return found.problem;
  return why_unsupported(found.devices[0].major, found.devices[0].minor);
}

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_gpu(); !reason.empty()) {
      GTEST_SKIP() << "skipped, because " << reason;
    }
  }
};

// Plans come from the estimate and no file is touched.
inline std::unique_ptr<Backend> make_gpu(const std::string& kernel = "") {
  return make_cuda_backend({.tune = tune::TuneMode::off, .force_kernel = kernel});
}

// Attention by this kernel alone, by cuDNN or unfused.
inline std::unique_ptr<Backend> make_forced(std::string_view way) {
  return make_cuda_backend({.tune = tune::TuneMode::off, .force_attention = std::string(way)});
}

}  // namespace octet::test
