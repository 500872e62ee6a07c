// GEMMs whose heads of q and k are normed and rotated, on any backend, compared with ref.
#pragma once

#include <cmath>

#include "ops/model_run.h"

namespace octet::test::model {

struct RotaryCase {
  int64_t m, k;
  int64_t q_heads, k_heads, head_dim;
  int64_t others;  // columns
  int64_t n() const { return (q_heads + k_heads) * head_dim + others; }
};

class RotaryRun {
 public:
  explicit RotaryRun(const RotaryCase& c)
      : case_(c), a_(DType::i8, c.m, c.k), w_(DType::i8, c.n(), c.k) {
    std::mt19937 random(7);
    fill_int8(a_.view(), random);
    fill_int8(w_.view(), random, -128);
    row_scale_ = random_floats(c.m, random, 1e-4f, 2e-2f);
    if (c.m > 3) row_scale_[2] = 0;  // eps decides
    if (c.m > 3) row_scale_[3] = std::nanf("");
    col_scale_ = random_floats(c.n(), random, 1e-4f, 1e-3f);
    q_weight_ = random_floats(c.head_dim, random, 0.5f, 1.5f);
    k_weight_ = random_floats(c.head_dim, random, -1.5f, 1.5f);
    for (const float angle : random_floats(c.m * c.head_dim / 2, random, -3.0f, 3.0f)) {
      cos_.push_back(std::cos(angle));
      sin_.push_back(std::sin(angle));
    }
  }

  GuardedMatrix run(Backend& backend, DType out_type) {
    const QWeight packed = backend.pack({w_.view(), vector_view(col_scale_)}, {}, {});
    GuardedMatrix out(out_type, case_.m, case_.n());
    const OnDevice a(backend, a_), row_scale(backend, row_scale_), q_weight(backend, q_weight_),
        k_weight(backend, k_weight_), cos(backend, cos_), sin(backend, sin_);
    OnDevice device_out(backend, out);
    const auto table = [&](const OnDevice& device, std::vector<float>& values) {
      return TensorView(device(vector_view(values)).data, DType::f32,
                        {case_.m, case_.head_dim / 2});
    };
    const HeadRotations heads{.q_heads = case_.q_heads,
                              .k_heads = case_.k_heads,
                              .eps = 1e-5f,
                              .q_weight = q_weight(vector_view(q_weight_)),
                              .k_weight = k_weight(vector_view(k_weight_)),
                              .cos = table(cos, cos_),
                              .sin = table(sin, sin_)};
    GemmArgs args;
    args.a = {a(a_.view()), row_scale(vector_view(row_scale_))};
    args.w = &packed;
    args.out = device_out(out.view());
    args.heads = &heads;
    backend.gemm(args, Fusion::rotary);
    device_out.download();
    return out;
  }

  // As with rotate_heads(); the other columns have the bits of a plain GEMM.
  void compare(Backend& backend) {
    GuardedMatrix want = run(*make_ref_backend(), DType::f32);
    for (const DType type : kTypes) {
      SCOPED_TRACE(fmt::format("{} m={} k={} {} and {} heads of {}", name_of(type), case_.m,
                               case_.k, case_.q_heads, case_.k_heads, case_.head_dim));
      GuardedMatrix got = run(backend, type);
      EXPECT_TRUE(got.guards_intact());
      const int64_t rotated = case_.n() - case_.others, half = case_.head_dim / 2;
      expect_close(got.view(), want.view(), [&](int64_t i, int64_t j) {
        if (j >= rotated) return 0.0;
        const int64_t partner = j % case_.head_dim < half ? j + half : j - half;
        return kFewRoundings * (std::fabs(read_element(want.view(), i, j)) +
                                std::fabs(read_element(want.view(), i, partner)));
      });
    }
  }

 private:
  RotaryCase case_;
  GuardedMatrix a_, w_;
  std::vector<float> row_scale_, col_scale_, q_weight_, k_weight_, cos_, sin_;
};

}  // namespace octet::test::model
