// What an op tells of its work: operations and bytes, by its shapes alone.
#include <gtest/gtest.h>

#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "ref/ref_backend.h"

namespace octet::test {
namespace {

class OpWorkTest : public testing::Test, private OpObserver {
 protected:
  OpWorkTest() { backend_->set_op_observer(this); }
  ~OpWorkTest() override { backend_->set_op_observer(nullptr); }

  // Zeros.
  TensorView matrix(DType dtype, const Shape& shape) {
    memory_.push_back(backend_->allocate(bytes_of(dtype, shape)));
    std::fill_n(memory_.back().data(), memory_.back().bytes(), std::byte{0});
    return memory_.back().view(dtype, shape);
  }
  void expect(std::string_view op, double operations, double int8_operations, double bytes) {
    ASSERT_EQ(seen_.size(), 1u);
    EXPECT_EQ(seen_[0].op, op);
    EXPECT_EQ(seen_[0].work.operations, operations);
    EXPECT_EQ(seen_[0].work.int8_operations, int8_operations);
    EXPECT_EQ(seen_[0].work.bytes, bytes);
    seen_.clear();
  }

  std::unique_ptr<Backend> backend_ = make_ref_backend(1);

 private:
  void before(std::string_view) override {}
  void after(const OpRecord& record) override { seen_.push_back(record); }

  std::vector<Buffer> memory_;
  std::vector<OpRecord> seen_;
};

TEST_F(OpWorkTest, Products) {
  constexpr int64_t m = 3, n = 4, k = 5;
  const QTensor rows = {matrix(DType::i8, {m, k}), matrix(DType::f32, {m})};
  const QTensor weight = {matrix(DType::i8, {n, k}), matrix(DType::f32, {n})};
  const QWeight packed = backend_->pack(weight, {}, {});
  backend_->gemm({rows, &packed, matrix(DType::bf16, {m, n})}, Fusion::none);
  expect("gemm", 2 * m * n * k, 2 * m * n * k, (m * k + 4 * m) + n * k + 2 * m * n);
  backend_->matmul(matrix(DType::bf16, {m, k}), matrix(DType::bf16, {n, k}),
                   matrix(DType::f32, {m, n}));
  expect("matmul", 2 * m * n * k, 0, 2 * m * k + 2 * n * k + 4 * m * n);
}

TEST_F(OpWorkTest, Attention) {
  constexpr int64_t rows = 3, keys = 5, heads = 2, dim = 4, channels = heads * dim;
  const TensorView q = matrix(DType::bf16, {rows, channels}),
                   out = matrix(DType::bf16, {rows, channels}),
                   k = matrix(DType::bf16, {keys, channels}),
                   v = matrix(DType::bf16, {keys, channels});
  backend_->attention({q, k, v, out, heads, heads});
  constexpr double products = 4 * rows * keys * channels;
  expect("attention", products, 0, 2 * (2 * rows + 2 * keys) * channels);
  backend_->attention({.q = matrix(DType::i8, {rows, channels}),
                       .k = matrix(DType::i8, {keys, channels}),
                       .v = v,
                       .out = out,
                       .heads = heads,
                       .kv_heads = heads,
                       .q_scales = matrix(DType::f32, {heads, rows}),
                       .k_scales = matrix(DType::f32, {heads, keys})});
  expect("attention", products, products / 2,
         (1 + 2) * (rows + keys) * channels + 4 * heads * (rows + keys));
}

TEST_F(OpWorkTest, AttentionOfCodesAlone) {
  constexpr int64_t rows = 3, keys = 5, heads = 2, dim = 4, channels = heads * dim;
  constexpr int64_t kept = QuantizedValues::kKeys;
  const QuantizedValues values = {matrix(DType::u8, {channels, kept}),
                                  matrix(DType::f32, {heads, 1})};
  backend_->quantize_values(matrix(DType::bf16, {keys, channels}), heads, values);
  expect("quantize", 0, 0, 2 * keys * channels + channels * kept + 4 * heads);
  backend_->attention({.q = matrix(DType::i8, {rows, channels}),
                       .k = matrix(DType::i8, {keys, channels}),
                       .v = values.codes,
                       .out = matrix(DType::bf16, {rows, channels}),
                       .heads = heads,
                       .kv_heads = heads,
                       .q_scales = matrix(DType::f32, {heads, rows}),
                       .k_scales = matrix(DType::f32, {heads, keys}),
                       .v_scales = values.scales});
  constexpr double products = 4 * rows * keys * channels;
  expect("attention", products, products,
         (1 + 2) * rows * channels + keys * channels + channels * kept +
             4 * heads * (rows + keys + 1));
}

TEST_F(OpWorkTest, Convolution) {
  constexpr int64_t height = 4, width = 6, in = 2, out = 3, taps = 9;
  for (const bool doubled : {false, true}) {
    const int64_t pixels = height * width / (doubled ? 4 : 1);
    backend_->conv2d({.x = matrix(DType::bf16, {pixels, in}),
                      .weight = matrix(DType::bf16, {out, taps * in}),
                      .bias = matrix(DType::bf16, {out}),
                      .out = matrix(DType::bf16, {height * width, out}),
                      .height = height,
                      .width = width,
                      .kernel = 3,
                      .doubled = doubled});
    expect("convolution", 2 * height * width * out * taps * in, 0,
           2 * (pixels * in + out * taps * in + height * width * out));
  }
}

TEST_F(OpWorkTest, PassesOverRows) {
  const TensorView h = matrix(DType::bf16, {3, 8}), x = matrix(DType::bf16, {3, 8});
  const QTensor q = {matrix(DType::i8, {3, 8}), matrix(DType::f32, {3})};
  constexpr double each = 2 * 3 * 8, quantized = 3 * 8 + 4 * 3;
  backend_->quantize_rows(x, {}, q);
  expect("quantize", 0, 0, each + quantized);
  backend_->add(h, x);
  expect("residual", 0, 0, 3 * each);
  const TensorView gate = matrix(DType::bf16, {8});
  backend_->add_gated_norm_quantize(h, x, {.eps = 1}, gate, {.eps = 1}, {}, q);
  expect("residual", 0, 0, 3 * each + quantized);
  backend_->add_row(h, gate);
  expect("residual", 0, 0, 2 * each);
}

}  // namespace
}  // namespace octet::test
