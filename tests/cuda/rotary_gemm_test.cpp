// The fusion rotary on the GPU: every kernel that holds whole heads, forced by name, against ref.
#include "cuda/cuda_support.h"
#include "ops/rotary_run.h"

namespace octet::test::model {
namespace {

class RotaryGemmOnGpu : public OnGpu {};

TEST_F(RotaryGemmOnGpu, EveryKernelWithWholeHeadsIsNearRef) {
  const RotaryCase cases[] = {{1, 16, 1, 1, 256, 0},
                              {5, 144, 2, 1, 256, 256},
                              {130, 272, 1, 2, 256, 40},
                              {300, 592, 3, 3, 256, 768},
                              {129, 2000, 1, 0, 256, 512}};
  int kernels = 0;
  for (const cuda::GemmCandidate& candidate : cuda::gemm_candidates()) {
    if (candidate.row->head_columns != 256) continue;
    const auto gpu = make_gpu(candidate.name);
    for (const RotaryCase& c : cases) {
      SCOPED_TRACE(candidate.name);
      const GemmProblem problem{.m = c.m,
                                .n = c.n(),
                                .k = c.k,
                                .fusion = Fusion::rotary,
                                .layout = "cuda_k128_permuted32",
                                .head_dim = 256};
      if (!gpu->fuses(problem)) continue;  // another GPU, or no tiles to share
      RotaryRun(c).compare(*gpu);
      ++kernels;
    }
  }
  if (kernels == 0) GTEST_SKIP() << "skipped, because no kernel of this GPU rotates heads";
}

TEST_F(RotaryGemmOnGpu, HeadsThatNoKernelHoldsAreNotFused) {
  const auto gpu = make_gpu();
  for (const int64_t head_dim : {2, 64, 128, 512}) {
    EXPECT_FALSE(gpu->fuses(
        {.m = 64, .n = 3 * head_dim, .k = 128, .fusion = Fusion::rotary, .head_dim = head_dim}));
  }
}

}  // namespace
}  // namespace octet::test::model
