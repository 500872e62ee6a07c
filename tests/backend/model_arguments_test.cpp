// Wrong arguments of the ops between a model's linears: each check throws one sentence that names
// the op, the argument and the values. The checks are the interface's, the same for all backends.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "formats/error_message.h"
#include "support.h"

namespace octet::test {
namespace {

// Enough memory for any view here; nobody gets to read or write it.
alignas(64) std::byte memory[4096];

TensorView matrix(int64_t rows, int64_t columns, DType type = DType::bf16) {
  return {memory, type, {rows, columns}};
}
TensorView vector(int64_t length, DType type = DType::f32) { return {memory, type, {length}}; }
TensorView without_memory(TensorView view) {
  view.data = nullptr;
  return view;
}

class ModelArguments : public testing::Test {
 protected:
  void expect_error(const std::function<void(Backend&)>& call, const std::string& part) {
    EXPECT_ERROR_WITH(call(*ref_), part);
  }

  std::unique_ptr<Backend> ref_ = make_ref_backend();
};

TEST_F(ModelArguments, Matrices) {
  const auto expect = [&](const TensorView& x, const std::string& part) {
    expect_error([&](Backend& b) { b.norm(x, {}, matrix(2, 4)); }, part);
  };
  expect({memory, DType::bf16, {8}}, "norm: x has shape [8], expected two dimensions");
  expect(matrix(2, 4, DType::f16), "norm: x is F16, expected F32 or BF16");
  expect(matrix(2, 4, DType::i8), "norm: x is I8, expected F32 or BF16");
  expect(without_memory(matrix(2, 4)), "norm: x [2, 4] has no memory");
  expect({memory + 1, DType::bf16, {2, 4}}, "norm: x is at an address that is not a multiple of");
  TensorView folded = matrix(2, 4);
  folded.strides[0] = 3;
  expect(folded, "norm: x has rows 3 elements apart");
  TensorView scattered = matrix(2, 4);
  scattered.strides[1] = 2;
  scattered.strides[0] = 8;
  expect(scattered, "norm: x has elements of a row 2 apart");
}

TEST_F(ModelArguments, Norm) {
  const TensorView x = matrix(2, 4);
  expect_error([&](Backend& b) { b.norm(x, {}, matrix(3, 4)); },
               "norm: out is [3, 4], expected [2, 4]");
  expect_error([&](Backend& b) { b.norm(x, {}, matrix(2, 4, DType::f32)); },
               "norm: out is F32, expected BF16");
  expect_error([&](Backend& b) { b.norm(x, {.eps = -1}, x); }, "eps is -1, expected 0 or more");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_error([&](Backend& b) { b.norm(x, {.eps = nan}, x); }, "eps is nan");
  expect_error([&](Backend& b) { b.norm(x, {.weight = vector(3)}, x); },
               "norm: weight is F32 [3], expected a dense F32 [4]");
  expect_error([&](Backend& b) { b.norm(x, {.weight = vector(4, DType::bf16)}, x); },
               "norm: weight is BF16 [4], expected a dense F32 [4]");
  expect_error([&](Backend& b) { b.norm(x, {.scale = vector(4)}, x); },
               "norm: scale is F32 [4], expected a dense BF16 [4]");
}

TEST_F(ModelArguments, NormQuantize) {
  const TensorView x = matrix(2, 8);
  const QTensor out{matrix(2, 8, DType::i8), vector(2)};
  expect_error(
      [&](Backend& b) {
        b.norm_quantize(x, {}, {}, {matrix(2, 7, DType::i8), vector(2)});
      },
      "norm_quantize: out is [2, 7], expected the shape [2, 8] of x");
  expect_error(
      [&](Backend& b) {
        b.norm_quantize(x, {}, {}, {matrix(2, 8, DType::i8), vector(3)});
      },
      "norm_quantize: out scales is F32 [3], expected a dense F32 [2]");
  expect_error(
      [&](Backend& b) {
        b.norm_quantize(x, {}, {Transform::smooth, vector(7), 0}, out);
      },
      "norm_quantize: smooth is F32 [7]");
  expect_error(
      [&](Backend& b) {
        b.norm_quantize(x, {}, {Transform::rotate, {}, 16}, out);
      },
      "k=8 is not a multiple of the rotation group 16");
  expect_error([&](Backend& b) { b.norm_quantize(x, {.weight = vector(7)}, {}, out); },
               "norm_quantize: weight");
}

TEST_F(ModelArguments, QuantizedHeads) {
  const TensorView x = matrix(3, 8);
  const TensorView angles = matrix(3, 2, DType::f32);
  const HeadRotation how{.heads = 2, .weight = vector(4), .cos = angles, .sin = angles};
  const QuantizedHeads out{matrix(3, 8, DType::i8), matrix(2, 3, DType::f32)};
  const auto expect = [&](const HeadRotation& rotation, const ConstTensorView& mean,
                          const QuantizedHeads& to, const std::string& part) {
    expect_error([&](Backend& b) { b.rotate_quantize_heads(x, rotation, mean, to); }, part);
  };
  expect(how, vector(5), out,
         "rotate_quantize_heads: mean is [5], expected one of whole heads, at most [8]");
  expect(how, vector(12), out,
         "rotate_quantize_heads: mean is [12], expected one of whole heads, at most [8]");
  expect(how, vector(4, DType::bf16), out,
         "rotate_quantize_heads: mean is BF16 [4], expected a dense F32 [4]");
  expect(how, {}, {matrix(3, 7, DType::i8), out.scales},
         "rotate_quantize_heads: codes is [3, 7], expected the shape [3, 8] of x");
  expect(how, {}, {out.codes, matrix(3, 2, DType::f32)},
         "rotate_quantize_heads: scales is [3, 2], expected [2, 3]");
  HeadRotation second = how;
  second.second_heads = 1;
  expect(second, {}, out, "rotate_quantize_heads: second_weight");
  second.second_heads = 3;
  expect(second, {}, out, "3 of 2 heads have a second weight, expected at most all");
  expect_error([&](Backend& b) { b.rotated_head_mean(x, how, vector(4)); },
               "rotated_head_mean: mean is F32 [4], expected a dense F32 [8]");
}

TEST_F(ModelArguments, QuantizedValues) {
  const TensorView v = matrix(130, 8);
  const QuantizedValues out{matrix(8, 256, DType::u8), matrix(2, 2, DType::f32)};
  const auto expect = [&](int64_t heads, const QuantizedValues& to, const std::string& part) {
    expect_error([&](Backend& b) { b.quantize_values(v, heads, to); }, part);
  };
  expect(3, out, "quantize_values: 8 channels in 3 heads");
  expect(2, {matrix(8, 130, DType::u8), out.scales},
         "quantize_values: codes is [8, 130], expected [8, 256]");
  expect(2, {matrix(8, 256, DType::i8), out.scales}, "quantize_values: codes is I8");
  expect(2, {out.codes, matrix(2, 1, DType::f32)},
         "quantize_values: scales is [2, 1], expected [2, 2]");
}

TEST_F(ModelArguments, AttentionOfCodes) {
  const TensorView q = matrix(3, 8, DType::i8), k = matrix(5, 4, DType::i8);
  const AttentionArgs right{q,
                            k,
                            matrix(4, 128, DType::u8),
                            matrix(3, 8),
                            2,
                            1,
                            false,
                            matrix(2, 3, DType::f32),
                            matrix(1, 5, DType::f32),
                            matrix(1, 1, DType::f32)};
  const auto expect = [&](const std::function<void(AttentionArgs&)>& change,
                          const std::string& part) {
    AttentionArgs args = right;
    change(args);
    expect_error([&](Backend& b) { b.attention(args); }, part);
  };
  expect([](AttentionArgs& a) { a.v = matrix(4, 5, DType::u8); },
         "attention: v is [4, 5], expected [4, 128] of codes");
  expect([](AttentionArgs& a) { a.v_scales = matrix(1, 2, DType::f32); },
         "attention: v_scales: [1, 2], expected [1, 1]");
  // Codes of values alone: q and k are not.
  expect([](AttentionArgs& a) { a.q = a.out, a.k = matrix(5, 4); }, "attention: v is U8");
}

TEST_F(ModelArguments, RotateHeads) {
  const TensorView x = matrix(3, 8);
  const TensorView angles = matrix(3, 2, DType::f32);
  expect_error(
      [&](Backend& b) {
        b.rotate_heads(x, {0, 0, vector(4), angles, angles});
      },
      "rotate_heads: 8 channels in 0 heads");
  expect_error(
      [&](Backend& b) {
        b.rotate_heads(x, {8, 0, vector(1), angles, angles});
      },
      "rotate_heads: 8 channels in 8 heads, expected heads of an even number");
  expect_error(
      [&](Backend& b) {
        b.rotate_heads(x, {2, 0, vector(8), angles, angles});
      },
      "rotate_heads: weight is F32 [8], expected a dense F32 [4]");
  expect_error(
      [&](Backend& b) {
        b.rotate_heads(x, {2, 0, vector(4), matrix(3, 4, DType::f32), angles});
      },
      "rotate_heads: cos or sin is [3, 4], expected [3, 2]");
  expect_error(
      [&](Backend& b) {
        b.rotate_heads(x, {2, 0, vector(4), angles, matrix(2, 2, DType::f32)});
      },
      "rotate_heads: cos or sin is [2, 2]");
  expect_error(
      [&](Backend& b) {
        b.rotate_heads(x, {2, 0, vector(4), angles, matrix(3, 2)});
      },
      "rotate_heads: cos and sin is BF16, expected F32");
}

TEST_F(ModelArguments, Attention) {
  const TensorView q = matrix(3, 8), k = matrix(5, 4);
  const AttentionArgs right{.q = q, .k = k, .v = k, .out = q, .heads = 2, .kv_heads = 1};
  const auto expect = [&](const std::function<void(AttentionArgs&)>& change,
                          const std::string& part) {
    AttentionArgs args = right;
    change(args);
    expect_error([&](Backend& b) { b.attention(args); }, part);
  };
  expect([](AttentionArgs& a) { a.k = matrix(5, 4, DType::f32); }, "attention: k is F32");
  expect([](AttentionArgs& a) { a.v = matrix(4, 4); },
         "attention: v is [4, 4], expected the shape [5, 4] of k");
  expect([](AttentionArgs& a) { a.out = matrix(3, 4); },
         "attention: out is [3, 4], expected the shape [3, 8] of q");
  expect([](AttentionArgs& a) { a.heads = 0; }, "attention: 0 heads on 1 of k and v");
  expect([](AttentionArgs& a) { a.kv_heads = 0; }, "attention: 2 heads on 0 of k and v");
  expect([](AttentionArgs& a) { a.kv_heads = 4; }, "attention: 2 heads on 4 of k and v");
  expect([](AttentionArgs& a) { a.heads = 3; }, "attention: 8 channels of q in 3 heads");
  expect([](AttentionArgs& a) { a.heads = 4; }, "k has 4 channels, expected 1 heads of 2");
  expect([](AttentionArgs& a) { a.k = a.v = matrix(0, 4); }, "there are no keys for 3 rows");
  expect([](AttentionArgs& a) { a.causal = true; }, "causal with 3 rows and 5 keys");
}

TEST_F(ModelArguments, ElementByElement) {
  const TensorView x = matrix(2, 4), other = matrix(2, 5), wide = matrix(2, 4, DType::f32);
  expect_error([&](Backend& b) { b.swiglu(x, other, x); }, "swiglu: up is [2, 5], expected [2, 4]");
  expect_error([&](Backend& b) { b.swiglu(x, x, other); }, "swiglu: out is [2, 5]");
  expect_error([&](Backend& b) { b.swiglu(x, wide, x); }, "swiglu: up is F32, expected BF16");
  expect_error([&](Backend& b) { b.activate(x, Activation::silu, other); },
               "activate: out is [2, 5]");
  expect_error([&](Backend& b) { b.activate(matrix(2, 4, DType::i32), Activation::silu, x); },
               "activate: x is I32");
  expect_error([&](Backend& b) { b.add(x, other); }, "add: x is [2, 5], expected [2, 4]");
  expect_error([&](Backend& b) { b.add(x, wide); }, "add: x is F32, expected BF16");
  expect_error([&](Backend& b) { b.add_gated(other, x, {}, vector(4, DType::bf16)); },
               "add_gated: h is [2, 5]");
  expect_error([&](Backend& b) { b.add_gated(x, x, {}, vector(4)); },
               "add_gated: gate is F32 [4], expected a dense BF16 [4]");
  expect_error([&](Backend& b) { b.add_gated(x, x, {}, {}); }, "add_gated: gate is");
  const QTensor codes{matrix(2, 4, DType::i8), vector(2)};
  const TensorView gate = vector(4, DType::bf16);
  expect_error([&](Backend& b) { b.add_gated_norm_quantize(other, x, {}, gate, {}, {}, codes); },
               "add_gated_norm_quantize: h is [2, 5]");
  expect_error(
      [&](Backend& b) {
        b.add_gated_norm_quantize(x, x, {}, gate, {.weight = vector(3)}, {}, codes);
      },
      "add_gated_norm_quantize: weight is F32 [3]");
  expect_error(
      [&](Backend& b) {
        b.add_gated_norm_quantize(x, x, {}, gate, {}, {}, {matrix(2, 5, DType::i8), vector(2)});
      },
      "add_gated_norm_quantize: out is [2, 5], expected the shape [2, 4] of x");
}

TEST_F(ModelArguments, Embeddings) {
  const TensorView table = matrix(3, 4), out = matrix(2, 4);
  const auto embed = [&](const std::vector<int32_t>& rows, const TensorView& to) {
    return [rows, to, table](Backend& b) { b.embed(table, rows, to); };
  };
  expect_error(embed({0, 3}, out), "embed: row 3 of a table with 3 rows");
  expect_error(embed({-1, 0}, out), "embed: row -1 of a table with 3 rows");
  expect_error(embed({0}, out), "embed: out is [2, 4], expected [1, 4]");
  expect_error(embed({0, 1}, matrix(2, 4, DType::f32)), "embed: out is F32, expected BF16");

  const std::vector<float> times = {1, 2};
  expect_error([&](Backend& b) { b.sinusoids(times, vector(2), matrix(3, 4)); },
               "sinusoids: out is [3, 4], expected 2 rows");
  expect_error([&](Backend& b) { b.sinusoids(times, vector(2), matrix(2, 5)); },
               "of an even number of channels");
  expect_error([&](Backend& b) { b.sinusoids(times, vector(4), out); },
               "sinusoids: frequencies is F32 [4], expected a dense F32 [2]");
}

TEST_F(ModelArguments, GroupNorm) {
  const TensorView x = matrix(6, 8);
  const GroupNorm right{.groups = 2, .weight = vector(8), .bias = vector(8)};
  const auto expect = [&](const std::function<void(GroupNorm&)>& change, const std::string& part) {
    GroupNorm how = right;
    change(how);
    expect_error([&](Backend& b) { b.group_norm(x, how, x); }, part);
  };
  expect([](GroupNorm& how) { how.groups = 0; }, "group_norm: 8 channels in 0 groups");
  expect([](GroupNorm& how) { how.groups = 3; }, "group_norm: 8 channels in 3 groups");
  expect([](GroupNorm& how) { how.eps = -0.5f; }, "group_norm: eps is -0.5");
  expect([](GroupNorm& how) { how.weight = vector(4); }, "group_norm: weight is F32 [4]");
  expect([](GroupNorm& how) { how.bias = {}; }, "group_norm: bias is");
  expect_error([&](Backend& b) { b.group_norm(x, right, matrix(8, 6)); },
               "group_norm: out is [8, 6], expected [6, 8]");
}

TEST_F(ModelArguments, Convolution) {
  const ConvArgs right{.x = matrix(6, 4),
                       .weight = matrix(5, 36),
                       .bias = vector(5, DType::bf16),
                       .out = matrix(6, 5),
                       .height = 2,
                       .width = 3,
                       .kernel = 3};
  const auto expect = [&](const std::function<void(ConvArgs&)>& change, const std::string& part) {
    ConvArgs args = right;
    change(args);
    expect_error([&](Backend& b) { b.conv2d(args); }, part);
  };
  expect([](ConvArgs& a) { a.kernel = 5; }, "conv2d: the kernel is 5 x 5, expected 1 or 3");
  expect([](ConvArgs& a) { a.height = 3; }, "conv2d: x has 6 rows, expected 3 x 3 pixels");
  expect([](ConvArgs& a) { a.height = a.width = -2; }, "expected -2 x -2 pixels");
  expect([](ConvArgs& a) { a.kernel = 1; }, "conv2d: weight is [5, 36], expected 1 x 1 taps of 4");
  expect([](ConvArgs& a) { a.weight = matrix(5, 36, DType::f32); }, "conv2d: weight is F32");
  expect([](ConvArgs& a) { a.out = matrix(6, 4); }, "conv2d: out is [6, 4], expected [6, 5]");
  expect([](ConvArgs& a) { a.bias = vector(5); }, "conv2d: bias is F32 [5], expected a dense BF16");
  expect([](ConvArgs& a) { a.bias = {}; }, "conv2d: bias is");
  expect([](ConvArgs& a) { a.doubled = true; }, "doubled to 2 x 3 pixels for a kernel of 3");
  const auto doubled = [](ConvArgs& a) {
    a.doubled = true;
    a.height = 4;
    a.width = 6;
  };
  expect(doubled, "conv2d: out is [6, 5], expected [24, 5]");
  expect([&](ConvArgs& a) { doubled(a), a.kernel = 1; }, "expected even sides and a kernel of 3");
  expect([&](ConvArgs& a) { doubled(a), a.width = 4; }, "conv2d: x has 6 rows, expected 2 x 2");
}

TEST_F(ModelArguments, MatmulBias) {
  const TensorView x = matrix(6, 4);
  expect_error([&](Backend& b) { b.matmul(x, x, matrix(6, 6), vector(6)); },
               "matmul: bias is F32 [6], expected a dense BF16 [6]");
  expect_error([&](Backend& b) { b.matmul(x, x, matrix(6, 6), vector(5, DType::bf16)); },
               "matmul: bias is BF16 [5], expected a dense BF16 [6]");
}

TEST(ModelChecks, UnknownFloatKernelNamesTheKnownOnes) {
  EXPECT_ERROR_WITH(make_cpu_backend({.force_matmul = "abacus"}),
                    "there is no kernel abacus, expected one of");
}

TEST_F(ModelArguments, EulerStep) {
  const EulerStep right = {.branches = {{{matrix(2, 4)}, {matrix(2, 4)}}},
                           .count = 2,
                           .z = matrix(2, 4, DType::f32),
                           .velocity = matrix(2, 4, DType::f32),
                           .rounded = matrix(2, 4),
                           .overflow = vector(1, DType::i32)};
  const auto expect = [&](const std::function<void(EulerStep&)>& change, const std::string& part) {
    EulerStep wrong = right;
    change(wrong);
    expect_error([&](Backend& b) { b.euler_step(wrong); }, part);
  };
  expect([](auto& step) { step.branches[0].velocity = matrix(2, 4, DType::f16); },
         "velocity of branch 1 is F16");
  expect([](auto& step) { step.branches[1].velocity = matrix(3, 4); },
         "velocity of branch 2 is [3, 4]");
  expect([](auto& step) { step.count = 0; }, "0 branches, expected 1 to 4");
  expect([](auto& step) { step.count = 5; }, "5 branches, expected 1 to 4");
  expect([](auto& step) { step.count = 3; }, "velocity of branch 3 has shape []");
  expect([](auto& step) { step.rounded = matrix(2, 4, DType::f32); }, "rounded is F32");
  expect([](auto& step) { step.z = matrix(2, 4); }, "z and velocity is BF16, expected F32");
  expect([](auto& step) { step.velocity = matrix(4, 2, DType::f32); },
         "z or velocity is [4, 2], expected [2, 4]");
  expect([](auto& step) { step.overflow = vector(2, DType::i32); }, "overflow is I32 [2]");
}

}  // namespace
}  // namespace octet::test
