// add_gated_norm_quantize on any backend: the bits of the two ops that it stands for.
#pragma once

#include <algorithm>

#include "backend/norm_run.h"

namespace octet::test::model {

struct FusedNormCase {
  DType type = DType::f32;
  int64_t rows = 1, channels = 1;
  int64_t gap = 3;  // elements between rows
  RowNorm::Kind next = RowNorm::Kind::rms;
};

// What a backend leaves of h, and the codes of its norm.
struct SummedAndQuantized {
  GuardedMatrix h, codes;
  std::vector<float> scales;
};

// -1: smooth, 0: none, else the group of a rotation.
inline void expect_fused_norm_equal_its_parts(Backend& backend, const FusedNormCase& c,
                                              std::initializer_list<int64_t> ways,
                                              std::mt19937& random) {
  const auto& [type, rows, channels, gap, next_kind] = c;
  GuardedMatrix x = random_matrix(type, rows, channels, random, 2, 0.2f, gap);
  GuardedMatrix h = random_matrix(type, rows, channels, random, 5, 0, gap);
  if (rows > 4) {  // rows that show, each in its own way; others stay as they are
    write_element(x.view(), 1, channels / 2, kNaN);
    write_element(h.view(), 2, channels - 1, kInf);
    write_element(x.view(), 3, 0, -kInf);
    for (int64_t j = 0; j < channels; ++j) {
      write_element(x.view(), 4, j, 0);
      write_element(h.view(), 4, j, 0);
    }
  }
  GuardedMatrix gate = random_vector(type, channels, random, 2);
  GuardedMatrix weight = random_vector(DType::f32, channels, random, 0.3f, 1);
  GuardedMatrix next_weight = random_vector(DType::f32, channels, random, 0.3f, 1);
  GuardedMatrix scale = random_vector(type, channels, random, 0.5f);
  GuardedMatrix smooth = random_vector(DType::f32, channels, random, 0.2f, 1);
  const Operand device_x(backend, x), device_gate(backend, gate), device_weight(backend, weight),
      device_next(backend, next_weight), device_scale(backend, scale),
      device_smooth(backend, smooth);
  const RowNorm how{.eps = 1e-5f, .weight = device_weight.vector()};
  const RowNorm next{.kind = next_kind,
                     .eps = 1e-6f,
                     .weight = device_next.vector(),
                     .scale = device_scale.vector()};
  for (const int64_t way : ways) {
    if (way > 0 && channels % way != 0) continue;
    SCOPED_TRACE(fmt::format("{} [{}, {}] gap {} way {}{}", name_of(type), rows, channels, gap, way,
                             next_kind == RowNorm::Kind::layer ? " layer" : ""));
    const ActivationTransform transform{way < 0    ? Transform::smooth
                                        : way == 0 ? Transform::none
                                                   : Transform::rotate,
                                        device_smooth.vector(), std::max<int64_t>(way, 0)};
    const auto run = [&](auto ops) {
      SummedAndQuantized result{h, GuardedMatrix(DType::i8, rows, channels, channels + gap),
                                std::vector<float>(static_cast<size_t>(rows), -1.0f)};
      Operand sum(backend, result.h), codes(backend, result.codes);
      OnDevice scales(backend, result.scales);
      ops(sum.view(), QTensor{codes.view(), scales(vector_view(result.scales))});
      sum.download();
      codes.download();
      scales.download();
      return result;
    };
    SummedAndQuantized got = run([&](const TensorView& sum, const QTensor& out) {
      backend.add_gated_norm_quantize(sum, device_x.view(), how, device_gate.vector(), next,
                                      transform, out);
    });
    SummedAndQuantized want = run([&](const TensorView& sum, const QTensor& out) {
      backend.add_gated(sum, device_x.view(), how, device_gate.vector());
      backend.norm_quantize(sum, next, transform, out);
    });
    ASSERT_TRUE(same_bits(got.h.view(), want.h.view()));
    ASSERT_TRUE(same_bits(got.codes.view(), want.codes.view()));
    for (int64_t i = 0; i < rows; ++i) {
      const float got_scale = got.scales[static_cast<size_t>(i)];
      const float want_scale = want.scales[static_cast<size_t>(i)];
      ASSERT_EQ(std::isnan(got_scale), rows > 4 && i >= 1 && i <= 3) << i;
      ASSERT_TRUE(got_scale == want_scale || std::isnan(want_scale))
          << i << ": " << got_scale << ", expected " << want_scale;
    }
  }
}

inline void expect_add_gated_norm_quantize_right(Backend& backend) {
  std::mt19937 random(7);
  for (const DType type : kTypes) {
    for (const int64_t channels : {1, 5, 64, 100, 1040, 4608}) {
      for (const int64_t rows : {1, 9}) {
        const FusedNormCase c{type, rows, channels};
        expect_fused_norm_equal_its_parts(backend, c, {-1, 0, 16, 256}, random);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    const FusedNormCase layer{type, 6, 64, 3, RowNorm::Kind::layer};
    expect_fused_norm_equal_its_parts(backend, layer, {0, 64}, random);
  }
}

}  // namespace octet::test::model
