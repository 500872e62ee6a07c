#include "backend/gemm.h"

#include "backend/argument_checks.h"
#include "base/error.h"

namespace octet {

const FusionRow& traits_of(Fusion fusion) {
  const auto index = static_cast<size_t>(fusion);
  check(index < kFusionCount, "fusion number {} is not in the list of {}", index, kFusionCount);
  return kFusions[index];
}

std::string_view name_of(Fusion fusion) { return traits_of(fusion).name; }

int64_t output_columns(Fusion fusion, int64_t n) { return traits_of(fusion).gated ? n / 2 : n; }

std::string GemmProblem::to_string() const {
  std::string text = fmt::format("m{} n{} k{} {}", m, n, k, name_of(out));
  if (fusion != Fusion::none) text += fmt::format("+{}", name_of(fusion));
  return text + " " + layout;
}

namespace {

// Gate and up rows alternate in a gated weight: any other fusion would return them mixed.
void check_gating(const QWeight& w, Fusion fusion) {
  if (traits_of(fusion).gated) {
    check(w.gated,
          "gemm: the fusion {} needs a weight of gate and up rows, got a plain one; pack it with "
          "RowOrder::gate_up",
          name_of(fusion));
    check(w.n % 2 == 0,
          "gemm: a weight of gate and up rows has n={}, expected an even n; pack() makes one", w.n);
  } else {
    check(!w.gated,
          "gemm: a weight of gate and up rows takes a gated fusion such as swiglu, got {}; pack it "
          "with RowOrder::plain",
          name_of(fusion));
  }
}

}  // namespace

GemmProblem describe_gemm(const GemmArgs& args, Fusion fusion) {
  check(args.w != nullptr, "gemm: the weight is missing; pack() makes one");
  const QWeight& w = *args.w;
  check_quantized("gemm: a", args.a);
  check_matrix("gemm: out", args.out, {DType::f32, DType::bf16, DType::f16, DType::i32});
  GemmProblem problem;
  problem.m = args.a.rows();
  problem.n = w.n;
  problem.k = args.a.k();
  problem.out = args.out.dtype;
  problem.fusion = fusion;
  problem.layout = w.layout;
  check(problem.k == w.k, "gemm: a has k={}, but the weight was packed with k={}", problem.k, w.k);
  check_gating(w, fusion);
  check_shape("gemm: out", args.out, {problem.m, output_columns(fusion, problem.n)});
  check(problem.k <= kMaxK, "gemm: k={} could overflow the int32 sum; the largest k is {}",
        problem.k, kMaxK);
  check(!traits_of(fusion).biased || w.bias || w.n == 0,
        "gemm: the fusion asks for a bias that the weight lacks");
  check(fusion == Fusion::none || problem.out != DType::i32,
        "gemm: an I32 output is the bare accumulator and takes no fusion, got {}", name_of(fusion));
  return problem;
}

}  // namespace octet

size_t std::hash<octet::GemmProblem>::operator()(const octet::GemmProblem& problem) const noexcept {
  size_t seed = std::hash<std::string>{}(problem.layout);
  const auto mix = [&seed](uint64_t value) {
    seed ^= value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2);
  };
  mix(static_cast<uint64_t>(problem.m));
  mix(static_cast<uint64_t>(problem.n));
  mix(static_cast<uint64_t>(problem.k));
  mix(static_cast<uint64_t>(problem.out) << 8 | static_cast<uint64_t>(problem.fusion));
  return seed;
}
