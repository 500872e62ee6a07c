// One GEMM with everything it needs, run on any backend and compared with ref.
#pragma once

#include <map>
#include <utility>

#include "support.h"

namespace octet::test {

struct GemmShape {
  int64_t m, n, k;
  int64_t a_stride = 0, out_stride = 0, w_stride = 0;
};

class GemmRun {
 public:
  GemmRun(const GemmShape& shape, uint32_t seed, int lowest_weight = -127)
      : shape_(shape),
        random_(seed),
        a_(DType::i8, shape.m, shape.k, shape.a_stride),
        w_(DType::i8, shape.n, shape.k, shape.w_stride) {
    fill_int8(a_.view(), random_);
    fill_int8(w_.view(), random_, lowest_weight);
    row_scale_ = random_floats(shape.m, random_, 1e-4f, 2e-2f);
    col_scale_ = random_floats(shape.n, random_, 1e-4f, 1e-3f);
    bias_ = random_floats(shape.n, random_, -3.0f, 3.0f);
  }

  // To be changed before the first comparison: results of ref are kept.
  TensorView a() { return a_.view(); }
  TensorView w() { return w_.view(); }
  std::vector<float>& row_scale() { return row_scale_; }
  std::vector<float>& col_scale() { return col_scale_; }

  // From now on the weight is borrowed from the backend's memory, see Backend::borrow(). Ref goes
  // on packing its own.
  GemmRun& borrowing() {
    borrows_ = true;
    return *this;
  }

  GuardedMatrix run(Backend& backend, DType out_type, Fusion fusion) {
    const bool gated = traits_of(fusion).gated;
    const OnDevice w(backend, w_), col_scale(backend, col_scale_), bias(backend, bias_);
    const QTensor weight{w_.view(), vector_view(col_scale_)};
    QWeight packed;
    if (borrows_ && backend.name() != "ref") {
      PlainWeight plain{.codes = w(w_.view()), .scales = col_scale(vector_view(col_scale_))};
      if (gated) plain.order = RowOrder::gate_up;
      if (!gated) plain.bias = bias(vector_view(bias_));
      packed = backend.borrow(plain);
    } else {
      packed = gated ? backend.pack(weight, {}, {}, RowOrder::gate_up)
                     : backend.pack(weight, vector_view(bias_), {});
    }
    GuardedMatrix out(out_type, shape_.m, output_columns(fusion, shape_.n), shape_.out_stride);
    const OnDevice a(backend, a_), row_scale(backend, row_scale_);
    OnDevice device_out(backend, out);
    GemmArgs args;
    args.a = {a(a_.view()), row_scale(vector_view(row_scale_))};
    args.w = &packed;
    args.out = device_out(out.view());
    backend.gemm(args, fusion);
    device_out.download();
    return out;
  }

  // Accumulator, and all outputs and fusions, against ref; the gated ones where n is even.
  void compare(Backend& backend) {
    for (const auto& [fusion, name, gated, biased] : kFusions) {
      if (gated && shape_.n % 2 != 0) continue;
      for (const auto type : {DType::i32, DType::f32, DType::bf16, DType::f16}) {
        if (fusion != Fusion::none && type == DType::i32) continue;
        compare(backend, type, fusion);
      }
    }
  }

  void compare(Backend& backend, DType type, Fusion fusion) {
    auto got = run(backend, type, fusion);
    EXPECT_TRUE(same_bits(got.view(), expected(type, fusion).view()))
        << "m=" << shape_.m << " n=" << shape_.n << " k=" << shape_.k << " " << name_of(type) << " "
        << name_of(fusion);
    EXPECT_TRUE(got.guards_intact());
  }

 private:
  // Kept, because ref is slow and several kernels are compared with it.
  GuardedMatrix& expected(DType type, Fusion fusion) {
    const std::pair variant(type, fusion);
    auto found = expected_.find(variant);
    if (found == expected_.end()) {
      found = expected_.emplace(variant, run(*make_ref_backend(), type, fusion)).first;
    }
    return found->second;
  }

  GemmShape shape_;
  bool borrows_ = false;
  std::mt19937 random_;
  GuardedMatrix a_, w_;
  std::vector<float> row_scale_, col_scale_, bias_;
  std::map<std::pair<DType, Fusion>, GuardedMatrix> expected_;
};

// Gates of every kind of bits (denormals, infinities and NaN among them) and all through the range
// where silu bends: with accumulators of one and row scales of one, the gate is its column's scale.
inline GemmRun run_of_all_gates() {
  constexpr int64_t kGates = 3000;
  GemmRun run({2, 2 * kGates, 1}, 23);
  std::fill_n(run.a().row<int8_t>(0), 1, int8_t{1});
  std::fill_n(run.a().row<int8_t>(1), 1, int8_t{-1});
  run.row_scale() = {1.0f, 1.0f};
  std::mt19937 random(29);
  for (int64_t j = 0; j < kGates; ++j) {
    *run.w().row<int8_t>(j) = 1;
    auto& gate = run.col_scale()[static_cast<size_t>(j)];
    if (j % 3 == 0) {
      const auto bits = static_cast<uint32_t>(random());
      std::memcpy(&gate, &bits, sizeof(gate));
    } else {
      gate = static_cast<float>(j) / (j % 3 == 1 ? 30.0f : 300.0f);
    }
  }
  return run;
}

}  // namespace octet::test
