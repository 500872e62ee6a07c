// Every check of the ops between a model's linears, by name, so that the tests of each backend run
// the same list:
//
//   norm_run.h       expect_norm_right, expect_norm_of_hard_rows_right,
//                    expect_norm_keeps_nan_in_its_row, expect_norm_quantize_right,
//                    expect_rotate_heads_right, expect_add_gated_right
//   fused_norm_run.h expect_add_gated_norm_quantize_right
//   heads_run.h      expect_rotate_heads_with_two_weights_right,
//                    expect_rotate_quantize_heads_right, expect_rotated_head_mean_right
//   rows_run.h       expect_swiglu_right, expect_activate_right, expect_add_right,
//                    expect_add_row_right, expect_embed_right, expect_sinusoids_right,
//                    expect_matmul_bias_right
//   attention_run.h  expect_attention_right, expect_causal_attention_right,
//                    expect_attention_of_large_scores_right, expect_attention_keeps_nan_in_place,
//                    expect_int8_attention_right
//   coded_values_run.h expect_quantize_values_right, expect_coded_attention_right,
//                    expect_coded_attention_close, expect_coded_attention_keeps_nan
//   image_run.h      expect_group_norm_right, expect_group_norm_of_hard_images_right,
//                    expect_conv2d_right, expect_conv2d_keeps_nan_within_reach,
//                    expect_doubled_conv2d_right, expect_group_norm_in_place_right
//   strip_run.h      expect_group_norm_of_strips_right, expect_conv2d_of_strips_right
//   euler_run.h      expect_euler_step_right, expect_euler_step_tells_of_overflow
//   here             expect_empty_inputs_do_nothing
#pragma once

#include "backend/attention_run.h"
#include "backend/coded_values_run.h"
#include "backend/euler_run.h"
#include "backend/fused_norm_run.h"
#include "backend/heads_run.h"
#include "backend/image_run.h"
#include "backend/norm_run.h"
#include "backend/rows_run.h"
#include "backend/strip_run.h"

namespace octet::test::model {

// Nothing is read or written, and nothing is an error.
inline void expect_empty_inputs_do_nothing(Backend& backend) {
  for (const DType type : kTypes) {
    for (const auto& [rows, channels] : {std::pair<int64_t, int64_t>{0, 8}, {4, 0}}) {
      const TensorView x(nullptr, type, {rows, channels});
      const TensorView table(nullptr, DType::f32, {rows, 0});
      std::vector<float> ones(8, 1.0f);
      const OnDevice device(backend, ones);
      const TensorView vector(device(vector_view(ones)).data, DType::f32, {channels});
      const TensorView typed(vector.data, type, {channels});
      const TensorView scales(vector.data, DType::f32, {rows});
      backend.norm(x, {}, x);
      backend.norm_quantize(x, {}, {}, {TensorView(nullptr, DType::i8, {rows, channels}), scales});
      backend.swiglu(x, x, x);
      backend.activate(x, Activation::gelu, x);
      backend.add(x, x);
      backend.add_gated(x, x, {}, typed);
      backend.add_gated_norm_quantize(x, x, {}, typed, {}, {},
                                      {TensorView(nullptr, DType::i8, {rows, channels}), scales});
      backend.group_norm(x, {.groups = 2, .weight = vector, .bias = vector}, x);
      const TensorView wide(nullptr, DType::f32, {rows, channels});
      backend.euler_step({.branches = {{{x}}},
                          .z = wide,
                          .velocity = wide,
                          .overflow = TensorView(vector.data, DType::i32, {1})});
      if (rows > 0) continue;
      const TensorView angles(nullptr, DType::f32, {0, 2});
      const TensorView head(vector.data, DType::f32, {4});
      const HeadRotation rotation{.heads = 2, .weight = head, .cos = angles, .sin = angles};
      backend.rotate_heads(x, rotation);
      backend.rotate_quantize_heads(
          x, rotation, {},
          {TensorView(nullptr, DType::i8, {0, 8}), TensorView(nullptr, DType::f32, {2, 0})});
      backend.quantize_values(
          x, 2, {TensorView(nullptr, DType::u8, {8, 0}), TensorView(nullptr, DType::f32, {2, 0})});
      backend.attention({.q = x, .k = x, .v = x, .out = x, .heads = 2, .kv_heads = 2});
      backend.conv2d({.x = x,
                      .weight = TensorView(vector.data, type, {1, 8}),
                      .bias = TensorView(vector.data, type, {1}),
                      .out = TensorView(nullptr, type, {0, 1}),
                      .height = 0,
                      .width = 5,
                      .kernel = 1});
      backend.embed(TensorView(vector.data, type, {1, 8}), {}, x);
      backend.sinusoids({}, head, x);
    }
  }
}

struct ModelOpCheck {
  const char* name;
  void (*run)(Backend& backend);
};

inline constexpr ModelOpCheck kModelOpChecks[] = {
    {"Norm", expect_norm_right},
    {"NormOfHardRows", expect_norm_of_hard_rows_right},
    {"NormKeepsNanInItsRow", expect_norm_keeps_nan_in_its_row},
    {"NormQuantize", expect_norm_quantize_right},
    {"RotateHeads", expect_rotate_heads_right},
    {"RotateHeadsWithTwoWeights", expect_rotate_heads_with_two_weights_right},
    {"RotateQuantizeHeads", expect_rotate_quantize_heads_right},
    {"RotatedHeadMean", expect_rotated_head_mean_right},
    {"AddGated", expect_add_gated_right},
    {"AddGatedNormQuantize", expect_add_gated_norm_quantize_right},
    {"Swiglu", expect_swiglu_right},
    {"Activate", expect_activate_right},
    {"Add", expect_add_right},
    {"AddRow", expect_add_row_right},
    {"Embed", expect_embed_right},
    {"Sinusoids", expect_sinusoids_right},
    {"MatmulBias", expect_matmul_bias_right},
    {"Attention", expect_attention_right},
    {"CausalAttention", expect_causal_attention_right},
    {"AttentionOfLargeScores", expect_attention_of_large_scores_right},
    {"Int8Attention", [](Backend& backend) { expect_int8_attention_right(backend); }},
    {"AttentionKeepsNanInPlace", expect_attention_keeps_nan_in_place},
    {"QuantizeValues", expect_quantize_values_right},
    {"CodedAttention", [](Backend& backend) { expect_coded_attention_right(backend); }},
    {"CodedAttentionIsClose", expect_coded_attention_close},
    {"CodedAttentionKeepsNan", [](Backend& b) { expect_coded_attention_keeps_nan(b); }},
    {"GroupNorm", expect_group_norm_right},
    {"GroupNormOfHardImages", expect_group_norm_of_hard_images_right},
    {"Conv2d", expect_conv2d_right},
    {"Conv2dKeepsNanWithinReach", expect_conv2d_keeps_nan_within_reach},
    {"DoubledConv2d", expect_doubled_conv2d_right},
    {"GroupNormInPlace", expect_group_norm_in_place_right},
    {"GroupNormOfStrips", [](Backend& backend) { expect_group_norm_of_strips_right(backend); }},
    {"Conv2dOfStrips", [](Backend& backend) { expect_conv2d_of_strips_right(backend); }},
    {"EulerStep", expect_euler_step_right},
    {"EulerStepTellsOfOverflow", expect_euler_step_tells_of_overflow},
    {"EmptyInputs", expect_empty_inputs_do_nothing},
};

}  // namespace octet::test::model
