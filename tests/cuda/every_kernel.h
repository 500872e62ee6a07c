// Tests over every row of the tile table, forced by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/gemm_run.h"
#include "cuda/cuda_support.h"

namespace octet::test {

inline std::vector<std::string> candidate_names() {
  std::vector<std::string> names;
  for (const auto& candidate : cuda::gemm_candidates()) names.push_back(candidate.name);
  return names;
}

class ForcedKernel : public OnGpu, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    backend_ = make_gpu(GetParam());
    // The GPU may have too little shared memory for this row.
    try {
      GemmRun({3, 8, 16}, 1).run(*backend_, DType::f32, Fusion::none);
    } catch (const Error& error) {
      const std::string what = error.what();
      if (what.find("was forced but cannot run") == std::string::npos) throw;
      GTEST_SKIP() << "skipped, because " << what.substr(what.rfind(": ") + 2);
    }
  }

  const cuda::GemmRow& row() const { return *cuda::find_candidate(GetParam()).row; }

  std::unique_ptr<Backend> backend_;
};

}  // namespace octet::test
