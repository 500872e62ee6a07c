#include "backend/gemm.h"

#include "backend/argument_checks.h"
#include "base/error.h"

namespace octet {

std::string GemmProblem::to_string() const {
  std::string text = fmt::format("m{} n{} k{} {}", m, n, k, name_of(out));
  if (fusion != Fusion::none) text += fmt::format("+{}", name_of(fusion));
  if (head_dim != 0) text += std::to_string(head_dim);
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
          "with "
          "RowOrder::plain",
          name_of(fusion));
  }
}

void check_heads(const GemmArgs& args, const GemmProblem& problem) {
  check(args.heads != nullptr, "gemm: the fusion {} needs heads to rotate",
        name_of(problem.fusion));
  const HeadRotations& heads = *args.heads;
  check(heads.q_weight.shape.rank() == 1 && heads.head_dim() > 0 && heads.head_dim() % 2 == 0,
        "gemm: the weight of the norm of q is {}, expected a vector of even length",
        heads.q_weight.shape.to_string());
  const int64_t head_dim = heads.head_dim();
  check_vector("gemm: the weight of the norm of q", heads.q_weight, head_dim);
  check_vector("gemm: the weight of the norm of k", heads.k_weight, head_dim);
  check(heads.q_heads >= 0 && heads.k_heads >= 0 &&
            (heads.q_heads + heads.k_heads) * head_dim <= problem.n,
        "gemm: {} and {} heads of {} columns, but n={}", heads.q_heads, heads.k_heads, head_dim,
        problem.n);
  for (const ConstTensorView* table : {&heads.cos, &heads.sin}) {
    check_matrix("gemm: cos and sin", *table, {DType::f32});
    check(table->shape == Shape({problem.m, head_dim / 2}) && table->is_dense(),
          "gemm: cos or sin is {}, expected a dense [{}, {}]", table->shape.to_string(), problem.m,
          head_dim / 2);
  }
  check(problem.out == DType::f32 || problem.out == DType::bf16,
        "gemm: rotated heads are F32 or BF16, got {}", name_of(problem.out));
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
  const int64_t columns = output_columns(fusion, problem.n);
  check(args.out.shape == Shape({problem.m, columns}), "gemm: out is {}, expected [{}, {}]",
        args.out.shape.to_string(), problem.m, columns);
  check(problem.k <= kMaxK, "gemm: k={} could overflow the int32 sum; the largest k is {}",
        problem.k, kMaxK);
  check(!traits_of(fusion).biased || w.bias || w.n == 0,
        "gemm: the fusion asks for a bias that the weight lacks");
  check(fusion == Fusion::none || problem.out != DType::i32,
        "gemm: an I32 output is the bare accumulator and takes no fusion, got {}", name_of(fusion));
  if (traits_of(fusion).rotates) {
    check_heads(args, problem);
    problem.head_dim = args.heads->head_dim();
  }
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
  mix(static_cast<uint64_t>(problem.head_dim));
  return seed;
}
