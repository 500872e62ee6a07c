// Cases of quantize_rows and dequantize_rows, run on any backend and compared with ref.
#pragma once

#include <algorithm>
#include <limits>

#include "support.h"

namespace octet::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct QuantizeCase {
  std::string what;
  GuardedMatrix x;
  Transform transform = Transform::none;
  int64_t group = 0;
  std::vector<float> smooth = {};
  std::vector<float> ratios = {};  // of a searched scale; none for quantize_rows
  bool stepwise = false;
};

// What quantize_rows, or quantize_rows_searched, made of a case, its values in rows that are apart.
struct Quantized {
  GuardedMatrix values;
  std::vector<float> scales;

  Quantized(Backend& backend, QuantizeCase& input)
      : values(DType::i8, input.x.view().shape[0], input.x.view().shape[1],
               input.x.view().shape[1] + 3),
        scales(static_cast<size_t>(input.x.view().shape[0]), -1.0f) {
    const OnDevice x(backend, input.x), smooth(backend, input.smooth);
    OnDevice device_values(backend, values), device_scales(backend, scales);
    ActivationTransform transform{
        .kind = input.transform, .group = input.group, .stepwise = input.stepwise};
    if (input.transform == Transform::smooth) transform.smooth = smooth(vector_view(input.smooth));
    const QTensor out{device_values(values.view()), device_scales(vector_view(scales))};
    if (input.ratios.empty()) {
      backend.quantize_rows(x(input.x.view()), transform, out);
    } else {
      backend.quantize_rows_searched(x(input.x.view()), transform, input.ratios, out);
    }
    device_values.download();
    device_scales.download();
  }
};

inline void expect_same(Quantized got, Quantized want) {
  EXPECT_TRUE(same_bits(got.values.view(), want.values.view()));
  EXPECT_TRUE(got.values.guards_intact());
  for (size_t i = 0; i < want.scales.size(); ++i) {
    if (std::isnan(want.scales[i]) && std::isnan(got.scales[i])) continue;
    EXPECT_EQ(got.scales[i], want.scales[i]) << "row " << i;
  }
}

inline void compare_with_ref(Backend& backend, std::vector<QuantizeCase> cases) {
  const auto ref = make_ref_backend();
  for (QuantizeCase& input : cases) {
    SCOPED_TRACE(input.what);
    expect_same(Quantized(backend, input), Quantized(*ref, input));
  }
}

// The cases, stepwise. `lowest`: where codes of -128 are none, what they are instead.
inline void compare_stepwise_with_ref(Backend& backend, std::vector<QuantizeCase> cases,
                                      int8_t lowest = -128) {
  const auto ref = make_ref_backend();
  for (QuantizeCase& input : cases) {
    SCOPED_TRACE(input.what + ", stepwise");
    input.stepwise = true;
    Quantized want(*ref, input);
    const TensorView codes = want.values.view();
    for (int64_t i = 0; i < codes.shape[0]; ++i) {
      int8_t* row = codes.row<int8_t>(i);
      for (int64_t j = 0; j < codes.shape[1]; ++j) row[j] = std::max(row[j], lowest);
    }
    expect_same(Quantized(backend, input), std::move(want));
  }
}

inline std::vector<QuantizeCase> cases_of_all_types_and_lengths() {
  std::mt19937 random(99);
  std::vector<QuantizeCase> cases;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t k : {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 100, 255, 1000, 5000}) {
      GuardedMatrix x(type, 9, k, k + 5);
      fill_activations(x.view(), random);
      cases.push_back({fmt::format("{} k={}", name_of(type), k), std::move(x)});
    }
  }
  return cases;
}

inline std::vector<QuantizeCase> smooth_cases() {
  std::mt19937 random(98);
  std::vector<QuantizeCase> cases;
  for (const int64_t k : {1, 7, 64, 333}) {
    GuardedMatrix x(DType::bf16, 5, k);
    fill_activations(x.view(), random);
    cases.push_back({fmt::format("smooth k={}", k), std::move(x), Transform::smooth, 0,
                     random_floats(k, random, 0.1f, 4.0f)});
  }
  return cases;
}

inline std::vector<QuantizeCase> rotate_cases() {
  std::mt19937 random(97);
  std::vector<QuantizeCase> cases;
  for (const int64_t group : {4, 16, 64, 256, 1024}) {
    for (const int64_t groups : {1, 2, 3, 5}) {
      GuardedMatrix x(DType::bf16, 3, group * groups);
      fill_activations(x.view(), random);
      cases.push_back({fmt::format("rotation group {} x {}", group, groups), std::move(x),
                       Transform::rotate, group});
    }
  }
  return cases;
}

// Zero, NaN, infinity, and rows so small that 127 / amax overflows.
inline std::vector<QuantizeCase> special_value_cases() {
  const float specials[] = {0.0f,   -0.0f,  kNan,   kInfinity, -kInfinity, 1e-45f,
                            1e-40f, 3e-38f, 1e-37f, 3.8e-37f,  3.4e38f,    65504.0f};
  const auto rows = static_cast<int64_t>(std::size(specials));
  std::vector<QuantizeCase> cases;
  for (const int64_t k : {1, 16, 53}) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      GuardedMatrix x(type, 2 * rows, k);
      for (int64_t i = 0; i < 2 * rows; ++i) {
        for (int64_t j = 0; j < k; ++j) {
          // Upper half: the special value once, among zeros; lower half: everywhere.
          const bool here = i >= rows || j == k / 2;
          write_element(x.view(), i, j, here ? specials[i % rows] : 0.0f);
        }
      }
      cases.push_back({fmt::format("special values in {} k={}", name_of(type), k), std::move(x)});
    }
  }
  return cases;
}

// The steps that ActivationTransform::stepwise stands for, one by one.
inline void expect_steps_of_type(Backend& backend, DType type) {
  std::mt19937 random(95);
  QuantizeCase input{"stepwise", GuardedMatrix(type, 40, 256)};
  input.stepwise = true;
  const TensorView x = input.x.view();
  fill_activations(x, random);
  Quantized got(backend, input);
  const auto rounded = [type](float value) {
    GuardedMatrix one(type, 1, 1);
    write_element(one.view(), 0, 0, value);
    return read_element(one.view(), 0, 0);
  };
  for (int64_t i = 0; i < 40; ++i) {
    float amax = 0;
    for (int64_t j = 0; j < 256; ++j) amax = std::fmax(amax, std::fabs(read_element(x, i, j)));
    EXPECT_EQ(got.scales[static_cast<size_t>(i)], amax / 127.0f);
    const float step = rounded(amax / 127.0f);
    for (int64_t j = 0; j < 256; ++j) {
      const float code = std::nearbyint(rounded(read_element(x, i, j) / step));
      EXPECT_EQ(got.values.view().row<int8_t>(i)[j], std::clamp(code, -128.0f, 127.0f));
    }
  }
}

// Halves of the quantization step: ties must go to the even integer.
inline void expect_ties_to_even(Backend& backend) {
  QuantizeCase ties{"ties", GuardedMatrix(DType::f32, 1, 255)};
  for (int64_t j = 0; j < 255; ++j) {
    write_element(ties.x.view(), 0, j, static_cast<float>(j) * 0.5f);
  }
  Quantized got(backend, ties);
  EXPECT_EQ(got.scales[0], 1.0f);
  for (int64_t j = 0; j < 255; ++j) {
    EXPECT_EQ(got.values.view().row<int8_t>(0)[j], std::nearbyint(static_cast<double>(j) * 0.5));
  }
}

inline void compare_dequantize_with_ref(Backend& backend) {
  const auto ref = make_ref_backend();
  std::mt19937 random(96);
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t k : {1, 16, 77, 1000}) {
      SCOPED_TRACE(fmt::format("dequantize {} k={}", name_of(type), k));
      GuardedMatrix q(DType::i8, 6, k, k + 3);
      fill_int8(q.view(), random, -128);
      auto scales = random_floats(6, random, 1e-6f, 1e3f);
      scales[2] = 0.0f;
      scales[3] = kNan;
      GuardedMatrix got(type, 6, k, k + 2), want(type, 6, k, k + 2);
      const OnDevice device_q(backend, q), device_scales(backend, scales);
      OnDevice device_got(backend, got);
      backend.dequantize_rows({device_q(q.view()), device_scales(vector_view(scales))},
                              device_got(got.view()));
      device_got.download();
      ref->dequantize_rows({q.view(), vector_view(scales)}, want.view());
      EXPECT_TRUE(same_bits(got.view(), want.view()));
      EXPECT_TRUE(got.guards_intact());
    }
  }
}

}  // namespace octet::test
