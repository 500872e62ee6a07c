// What ref computes for cases small enough to be worked out by hand: the definition of each op
// between a model's linears. The others are compared with ref (model_ops_run.h).
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support.h"

namespace octet::test {
namespace {

constexpr float kRounding = 1e-6f;  // a few roundings of values below ten

// F32, dense.
struct Values {
  std::vector<float> data;
  int64_t columns;

  TensorView view() {
    const auto rows = static_cast<int64_t>(data.size()) / columns;
    return {reinterpret_cast<std::byte*>(data.data()), DType::f32, {rows, columns}};
  }
  TensorView vector() { return vector_view(data); }
};

Values like(const Values& x) { return {std::vector<float>(x.data.size(), -99.0f), x.columns}; }

void expect_values(const Values& got, const std::vector<float>& want) {
  ASSERT_EQ(got.data.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.data[i], want[i], kRounding) << i;
}

class RefValues : public testing::Test {
 protected:
  std::unique_ptr<Backend> ref = make_ref_backend();
};

TEST_F(RefValues, RmsNorm) {
  Values x{{3, 4}, 2}, out = like(x), weight{{2, 1}, 2}, scale{{0, 1}, 2};
  ref->norm(x.view(), {}, out.view());  // mean square 12.5
  expect_values(out, {3 / std::sqrt(12.5f), 4 / std::sqrt(12.5f)});
  ref->norm(x.view(), {.eps = 3.5f, .weight = weight.vector(), .scale = scale.vector()},
            out.view());  // divided by 4
  expect_values(out, {3 / 4.0f * 2, 4 / 4.0f * 1 * (1 + 1)});
}

TEST_F(RefValues, LayerNorm) {
  Values x{{1, 3, 10, 10}, 2}, out = like(x);
  ref->norm(x.view(), {.kind = RowNorm::Kind::layer, .eps = 3}, out.view());
  expect_values(out, {-0.5f, 0.5f, 0, 0});
}

TEST_F(RefValues, NormQuantize) {
  Values x{{3, -4}, 2};
  std::vector<int8_t> codes(2);
  Values scale{{0}, 1};
  ref->norm_quantize(x.view(), {.eps = 3.5f}, {},
                     {TensorView(reinterpret_cast<std::byte*>(codes.data()), DType::i8, {1, 2}),
                      scale.vector()});  // 0.75 and -1
  EXPECT_EQ(codes, (std::vector<int8_t>{95, -127}));
  EXPECT_NEAR(scale.data[0], 1 / 127.0f, kRounding);
}

// Two heads of two pairs; the first pair turns by 90 degrees, the second not at all.
TEST_F(RefValues, RotateHeads) {
  Values x{{1, 2, 3, 4, 2, 2, 2, 2}, 8}, weight{{1, 1, 1, 2}, 4};
  Values cos{{0, 1}, 2}, sin{{1, 0}, 2};
  ref->rotate_heads(x.view(), {2, 8.5f, weight.vector(), cos.view(), sin.view()});
  const float first = 4, second = std::sqrt(12.5f);  // mean squares 7.5 and 4
  expect_values(x, {-3 / first, 2 / first, 1 / first, 8 / first, -2 / second, 2 / second,
                    2 / second, 4 / second});
}

TEST_F(RefValues, Attention) {
  const float ln3 = std::log(3.0f);
  Values q{{2, 0, 0, 0}, 4}, k{{0, 0, 0, 0, ln3, 0, 0, 0}, 4};
  Values v{{4, 0, 1, 8, 8, 0, 1, 0}, 4}, out = like(q);
  ref->attention({q.view(), k.view(), v.view(), out.view(), 1, 1});  // weights 1/4 and 3/4
  expect_values(out, {7, 0, 1, 2});
}

TEST_F(RefValues, CausalAttentionSeesKeysUpToItsRow) {
  Values q{{0, 0, 0}, 1}, k{{5, 6, 7}, 1}, v{{3, 6, 12}, 1}, out = like(q);
  ref->attention({q.view(), k.view(), v.view(), out.view(), 1, 1, true});
  expect_values(out, {3, 4.5f, 7});
}

TEST_F(RefValues, NeighbouringHeadsShareKeysAndValues) {
  Values q{{0, 0, 0, 0}, 4}, k{{0, 0}, 2}, v{{5, 7}, 2}, out = like(q);
  ref->attention({q.view(), k.view(), v.view(), out.view(), 4, 2});
  expect_values(out, {5, 5, 7, 7});
}

TEST_F(RefValues, Activations) {
  Values x{{0, 1, -1}, 3}, up{{5, 2, 2}, 3}, out = like(x);
  const float sigmoid = 1 / (1 + std::exp(-1.0f));
  ref->swiglu(x.view(), up.view(), out.view());
  expect_values(out, {0, 2 * sigmoid, -2 * (1 - sigmoid)});
  ref->activate(x.view(), Activation::silu, out.view());
  expect_values(out, {0, sigmoid, -(1 - sigmoid)});
  ref->activate(x.view(), Activation::gelu, out.view());
  // The normal distribution is below one standard deviation in 84.134475 % of cases.
  expect_values(out, {0, 0.84134475f, -0.15865525f});
}

TEST_F(RefValues, Residuals) {
  Values h{{1, 2}, 2}, x{{3, 4}, 2}, gate{{std::atanh(0.5f), 0}, 2};
  ref->add(h.view(), x.view());
  expect_values(h, {4, 6});
  ref->add_gated(h.view(), x.view(), {.eps = 3.5f}, gate.vector());
  expect_values(h, {4 + 0.5f * 3 / 4, 6});
}

TEST_F(RefValues, Embeddings) {
  Values table{{1, 2, 3, 4, 5, 6}, 2}, out = like(table), frequencies{{0.5f, 0}, 2};
  ref->embed(table.view(), std::vector<int32_t>{2, 0, 2}, out.view());
  expect_values(out, {5, 6, 1, 2, 5, 6});
  Values waves{{9, 9, 9, 9}, 4};
  ref->sinusoids(std::vector<float>{2}, frequencies.vector(), waves.view());
  expect_values(waves, {std::sin(1.0f), 0, std::cos(1.0f), 1});
}

TEST_F(RefValues, GroupNorm) {
  // Group 0: 1, 3, 5, 7 has mean 4 and variance 5. Group 1 is constant.
  Values x{{1, 3, 10, 10, 5, 7, 10, 10}, 4}, out = like(x);
  Values weight{{1, 2, 1, 1}, 4}, bias{{0, 0, 1, 2}, 4};
  ref->group_norm(x.view(), {2, 4, weight.vector(), bias.vector()}, out.view());
  expect_values(out, {-1, -2 / 3.0f, 1, 2, 1 / 3.0f, 2, 1, 2});
  ref->group_norm(x.view(), {2, 4, weight.vector(), bias.vector(), true}, out.view());
  EXPECT_NEAR(out.data[0], -1 / (1 + std::exp(1.0f)), kRounding);
  EXPECT_NEAR(out.data[3], 2 / (1 + std::exp(-2.0f)), kRounding);
}

TEST_F(RefValues, ConvolutionCountsWhatItReaches) {
  Values x{std::vector<float>(12, 1.0f), 1}, weight{std::vector<float>(9, 1.0f), 9};
  Values bias{{0.5f}, 1}, out = like(x);
  ref->conv2d({x.view(), weight.view(), bias.vector(), out.view(), 3, 4, 3});
  expect_values(out, {4.5f, 6.5f, 6.5f, 4.5f, 6.5f, 9.5f, 9.5f, 6.5f, 4.5f, 6.5f, 6.5f, 4.5f});
}

// The second tap of the first row, of the second channel alone: the pixel above.
TEST_F(RefValues, ConvolutionTapsComeBeforeChannels) {
  Values x{{1, 10, 2, 20, 3, 30, 4, 40}, 2}, weight{std::vector<float>(18, 0.0f), 18};
  weight.data[1 * 2 + 1] = 1;
  Values bias{{0}, 1}, out{{9, 9, 9, 9}, 1};
  ref->conv2d({x.view(), weight.view(), bias.vector(), out.view(), 2, 2, 3});
  expect_values(out, {0, 0, 10, 20});
  Values pointwise{{1, 1}, 2};
  ref->conv2d({x.view(), pointwise.view(), bias.vector(), out.view(), 2, 2, 1});
  expect_values(out, {11, 22, 33, 44});
}

// The tap in the middle shows the image that is convolved, the one to its left that image moved.
TEST_F(RefValues, ConvolutionOfADoubledImage) {
  Values x{{1, 2}, 1}, weight{std::vector<float>(9, 0.0f), 9}, bias{{0}, 1};
  Values out{std::vector<float>(8), 1};
  const ConvArgs args{x.view(), weight.view(), bias.vector(), out.view(), 2, 4, 3, true};
  weight.data[4] = 1;
  ref->conv2d(args);
  expect_values(out, {1, 1, 2, 2, 1, 1, 2, 2});
  weight.data[4] = 0;
  weight.data[3] = 1;
  ref->conv2d(args);
  expect_values(out, {0, 1, 1, 2, 0, 1, 1, 2});
}

TEST_F(RefValues, MatmulWithBias) {
  Values a{{1, 2}, 2}, b{{3, 4, 5, 6}, 2}, bias{{100, 200}, 2}, out{{9, 9}, 2};
  ref->matmul(a.view(), b.view(), out.view(), bias.vector());
  expect_values(out, {111, 217});
}

}  // namespace
}  // namespace octet::test
